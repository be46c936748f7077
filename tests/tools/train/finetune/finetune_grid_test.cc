#include "tools/train/finetune/finetune_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace hippodrome::finetune_grid_test {
namespace {

TEST(FinetuneGridTest, HasAllCombinations) {
  const FinetuneGrid grid = {
      .rates = {1e-5, 2e-5}, .weight_decays = {0.1}, .batches = {16, 32}, .epochs = {3}};
  EXPECT_THAT(
      PointsOf(grid),
      testing::ElementsAre(FinetunePoint{1e-5, 0.1, 16, 3}, FinetunePoint{1e-5, 0.1, 32, 3},
                           FinetunePoint{2e-5, 0.1, 16, 3}, FinetunePoint{2e-5, 0.1, 32, 3}));
}

TEST(FinetuneGridTest, IsAsPublished) {
  EXPECT_EQ(PointsOf(PublishedGlueGrid()).size(), 6U * 2 * 2 * 3);
  EXPECT_EQ(PointsOf(PublishedSquadGrid()).size(), 2U * 2);
}

TEST(FinetuneGridTest, EveryRunHasAName) {
  EXPECT_EQ(RunName({2e-5, 0.01, 16, 3}, 1), "rate-2e-05-decay-0.01-batch-16-epochs-3-seed-1");
  std::set<std::string> names;
  for (const FinetunePoint& point : PointsOf(PublishedGlueGrid())) names.insert(RunName(point, 1));
  EXPECT_EQ(names.size(), 72U);
}

}  // namespace
}  // namespace hippodrome::finetune_grid_test
