#include "tools/evaluate/lm/few_shot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hippodrome::few_shot_test {
namespace {

using testing::ElementsAre;

// What CPython 3.11 prints for r = random.Random(1234) and r.sample(range(32), 3), three times,
// then r.sample(range(1000), 4) and r.sample(range(100), 8).
TEST(FewShotTest, SamplesAsPythonDoes) {
  PythonSampler sampler(1234);
  EXPECT_THAT(sampler.Sample(32, 3), ElementsAre(28, 7, 0));
  EXPECT_THAT(sampler.Sample(32, 3), ElementsAre(5, 2, 6));
  EXPECT_THAT(sampler.Sample(32, 3), ElementsAre(22, 15, 1));
  EXPECT_THAT(sampler.Sample(1000, 4), ElementsAre(31, 807, 16, 354));
  EXPECT_THAT(sampler.Sample(100, 8), ElementsAre(82, 79, 61, 78, 59, 19, 11, 23));
}

TEST(FewShotTest, AllOfAPoolAreDrawnOnce) {
  PythonSampler sampler(7);
  for (const size_t size : {1, 5, 21, 64}) {
    std::vector<size_t> drawn = sampler.Sample(size, size);
    std::sort(drawn.begin(), drawn.end());
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(drawn[i], i);
  }
}

}  // namespace
}  // namespace hippodrome::few_shot_test
