#include "server/handlers/generation_call.h"

#include <gtest/gtest.h>

#include <set>

namespace hippodrome::generation_call_test {
namespace {

TEST(ChoiceSeedTest, TheFirstChoiceHasTheSeedItself) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1234}, ~uint64_t{0}}) {
    EXPECT_EQ(ChoiceSeed(seed, 0), seed);
  }
}

// The outputs of SplitMix64 as its authors' program gives them for this start.
TEST(ChoiceSeedTest, OthersHaveTheOutputsOfSplitMix64) {
  const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                               4593380528125082431u, 16408922859458223821u};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ChoiceSeed(1234567, i + 1), expected[i]);
}

TEST(ChoiceSeedTest, SeedsDiffer) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (int64_t choice = 0; choice < 128; ++choice) seeds.insert(ChoiceSeed(seed, choice));
  }
  EXPECT_EQ(seeds.size(), 100u * 128u);
}

}  // namespace
}  // namespace hippodrome::generation_call_test
