// Expected values are those of numpy itself.
#include "tools/train/data/numpy_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hippodrome::numpy_generator_test {
namespace {

using testing::ElementsAre;

TEST(NumpyGeneratorTest, UniformNumbers) {
  NumpyGenerator random(0);
  EXPECT_EQ(random.Uniform(), 0.6369616873214543);
  EXPECT_EQ(random.Uniform(), 0.2697867137638703);
  EXPECT_EQ(NumpyGenerator(12345).Uniform(), 0.22733602246716966);
}

TEST(NumpyGeneratorTest, Integers) {
  NumpyGenerator random(12345);
  std::vector<int64_t> integers;
  for (int i = 0; i < 3; ++i) integers.push_back(random.Integer(10));
  EXPECT_THAT(integers, ElementsAre(6, 2, 7));
}

// One range of integers draws nothing, and uniform numbers leave the waiting half alone.
TEST(NumpyGeneratorTest, HalvesWait) {
  NumpyGenerator plain(3);
  const int64_t first = plain.Integer(1000);
  const int64_t second = plain.Integer(1000);
  const double third = plain.Uniform();
  NumpyGenerator mixed(3);
  EXPECT_EQ(mixed.Integer(1), 0);
  EXPECT_EQ(mixed.Integer(1000), first);
  EXPECT_EQ(mixed.Uniform(), third);
  EXPECT_EQ(mixed.Integer(1000), second);
}

TEST(NumpyGeneratorTest, ShuffleKeepsAll) {
  NumpyGenerator random(1);
  std::vector<int> list = {0, 1, 2, 3, 4, 5, 6};
  random.Shuffle(list);
  EXPECT_THAT(list, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6));
  std::vector<int> none;
  random.Shuffle(none);
}

}  // namespace
}  // namespace hippodrome::numpy_generator_test
