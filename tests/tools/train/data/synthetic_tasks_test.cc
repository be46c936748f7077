// First rows and checksums are those of the published generator's data.
#include "tools/train/data/synthetic_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/base/status.h"

namespace hippodrome::synthetic_tasks_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// FNV-1a with tokens in place of bytes.
uint64_t Checksum(const SyntheticSequences& sequences) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const auto& sequence : sequences) {
    for (const int32_t token : sequence) {
      sum = (sum ^ static_cast<uint64_t>(token)) * 0x100000001b3u;
    }
  }
  return sum;
}

TEST(SyntheticTasksTest, InductionHeadAsPublished) {
  const auto examples = MakeSyntheticExamples({});
  ASSERT_TRUE(examples.ok()) << examples.status();
  ASSERT_EQ(examples->train.size(), 5000U);
  ASSERT_EQ(examples->test.size(), 500U);
  EXPECT_THAT(examples->train[0],
              ElementsAre(13, 13, 3, 15, 2, 14, 15, 2, 15, 1, 13, 2, 5, 1, 11, 12, 13, 8, 7, 16, 10,
                          17, 19, 9, 11, 11, 15, 5, 5, 18, 19, 9));
  EXPECT_EQ(Checksum(examples->train), 0xaa850568db37b66eu);
  EXPECT_EQ(Checksum(examples->test), 0x05fb9df89dead944u);
}

TEST(SyntheticTasksTest, AssociativeRecallAsPublished) {
  const auto small = MakeSyntheticExamples(
      {.kind = SyntheticKind::kAssociativeRecall, .vocabulary = 10, .length = 20});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_THAT(small->test[0],
              ElementsAre(3, 5, 3, 5, 4, 6, 1, 5, 1, 5, 4, 6, 2, 5, 1, 5, 2, 5, 1, 5, 9, 1, 5));
  EXPECT_EQ(Checksum(small->train), 0x2904fa2d3f3b56b2u);
  EXPECT_EQ(Checksum(small->test), 0x1e42ba1d6764b948u);
  const auto large = MakeSyntheticExamples(
      {.kind = SyntheticKind::kAssociativeRecall, .vocabulary = 20, .length = 40});
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(Checksum(large->train), 0x4f41e8ba7c00138bu);
  EXPECT_EQ(Checksum(large->test), 0x3934c44ab63839d0u);
}

// So few tokens that many of the first sequences are the same.
TEST(SyntheticTasksTest, RepetitionsAreReplaced) {
  const auto examples = MakeSyntheticExamples({.kind = SyntheticKind::kAssociativeRecall,
                                               .vocabulary = 6,
                                               .length = 8,
                                               .train = 60,
                                               .test = 30});
  ASSERT_TRUE(examples.ok()) << examples.status();
  const std::set<std::vector<int32_t>> train(examples->train.begin(), examples->train.end());
  EXPECT_EQ(train.size(), 60U);
  EXPECT_EQ(examples->test.size(), 30U);
}

TEST(SyntheticTasksTest, BatchesPredictTheNextToken) {
  const auto examples = MakeSyntheticExamples({.train = 8, .test = 3});
  const auto train = MakeSyntheticData(examples->train, {.batch_size = 4});
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->batches(), 2);
  const TrainingBatch batch = (*train)->Batch(0);
  EXPECT_EQ(batch.length, 31);
  EXPECT_EQ(batch.ids.size(), 4U * 31);
  EXPECT_TRUE(std::equal(batch.ids.begin() + 1, batch.ids.begin() + 31, batch.labels.begin()));
}

TEST(SyntheticTasksTest, EvaluationScoresTheLastPosition) {
  const auto examples = MakeSyntheticExamples({.train = 8, .test = 3});
  const auto test = MakeSyntheticData(examples->test, {.batch_size = 2, .evaluation = true});
  ASSERT_TRUE(test.ok()) << test.status();
  const TrainingBatch batch = (*test)->Batch(1);
  ASSERT_EQ(batch.sequences, 1);
  EXPECT_EQ(std::count(batch.labels.begin(), batch.labels.end(), -1), 30);
  EXPECT_EQ(batch.labels.back(), examples->test[2].back());
}

TEST(SyntheticTasksTest, RefusesImpossibleTasks) {
  EXPECT_THAT(Message(MakeSyntheticExamples({.vocabulary = 3}).status()),
              HasSubstr("vocabulary of the task is 3, expected 4 to 65536"));
  EXPECT_FALSE(MakeSyntheticExamples({.length = 3}).ok());
  EXPECT_FALSE(MakeSyntheticExamples({.train = 0}).ok());
  EXPECT_FALSE(MakeSyntheticExamples({.test = -1}).ok());
  EXPECT_THAT(
      Message(
          MakeSyntheticExamples({.kind = SyntheticKind::kAssociativeRecall, .length = 5}).status()),
      HasSubstr("expected an even number"));
  EXPECT_THAT(Message(MakeSyntheticExamples(
                          {.kind = SyntheticKind::kAssociativeRecall, .vocabulary = 4, .length = 4})
                          .status()),
              HasSubstr("too few different sequences"));
}

}  // namespace
}  // namespace hippodrome::synthetic_tasks_test
