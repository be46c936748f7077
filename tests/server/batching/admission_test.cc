#include "server/batching/admission.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hippodrome::admission_test {
namespace {

TEST(AdmissionTest, TakesTheLongestPrefixThatFits) {
  const std::vector<Footprint> queue = {{1, 2, 120}, {1, 3, 130}, {1, 1, 110}};
  EXPECT_EQ(Admissible(queue, {3, 6, 1000}), 3u);
  EXPECT_EQ(Admissible(queue, {2, 6, 1000}), 2u);
  EXPECT_EQ(Admissible(queue, {3, 4, 1000}), 1u);
  EXPECT_EQ(Admissible(queue, {3, 6, 249}), 1u);
  EXPECT_EQ(Admissible(queue, {0, 6, 1000}), 0u);
  EXPECT_EQ(Admissible({}, {3, 6, 1000}), 0u);
}

TEST(AdmissionTest, NobodyOvertakes) {
  const std::vector<Footprint> queue = {{1, 5, 150}, {1, 1, 110}};
  EXPECT_EQ(Admissible(queue, {2, 4, 1000}), 0u);
}

// Any workload: never over the capacity, and everything ends.
TEST(AdmissionTest, RandomWorkloadsStayWithinCapacityAndEnd) {
  std::mt19937 random(1);
  const Footprint capacity{8, 100, 8 * 100 + 100 * 10};
  std::vector<Footprint> queue;
  for (int i = 0; i < 20000; ++i) {
    const int64_t pages = 1 + static_cast<int64_t>(random() % 100);
    queue.push_back({1, pages, 100 + 10 * pages});
  }
  std::vector<Footprint> running;
  Footprint used;
  size_t next = 0;
  while (next < queue.size() || !running.empty()) {
    const size_t count = Admissible(std::span(queue).subspan(next), Free(capacity, used));
    ASSERT_TRUE(count > 0 || !running.empty());
    for (size_t i = 0; i < count; ++i, ++next) {
      running.push_back(queue[next]);
      used.slots += queue[next].slots;
      used.pages += queue[next].pages;
      used.bytes += queue[next].bytes;
    }
    ASSERT_LE(used.slots, capacity.slots);
    ASSERT_LE(used.pages, capacity.pages);
    ASSERT_LE(used.bytes, capacity.bytes);
    const size_t leaving = random() % running.size();
    used = Free(used, running[leaving]);
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(leaving));
  }
  EXPECT_EQ(used.bytes, 0);
}

}  // namespace
}  // namespace hippodrome::admission_test
