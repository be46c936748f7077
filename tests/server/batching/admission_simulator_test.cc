// Random workloads: what admission.h promises holds in each of them.
// HIPPODROME_ADMISSION_WORKLOADS says how many (default: 5000).
#include "tests/testing/admission_simulator.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace hippodrome::admission_simulator_test {
namespace {

uint64_t Workloads() {
  const char* const text = std::getenv("HIPPODROME_ADMISSION_WORKLOADS");
  return text == nullptr ? 5000 : std::strtoull(text, nullptr, 10);
}

TEST(AdmissionSimulatorTest, PromisesAreKeptInEveryWorkload) {
  int64_t overtakings = 0;
  for (uint64_t seed = 0; seed < Workloads(); ++seed) {
    const Workload workload = RandomWorkload(seed);
    const SimulationResult result = Simulate(workload, AdmissionRule::kBackfilling);
    ASSERT_EQ(result.fault, "") << "seed " << seed;
    for (size_t i = 0; i < workload.requests.size(); ++i) {
      ASSERT_TRUE(result.wait[i] || workload.requests[i].cancel) << "seed " << seed << ": " << i;
    }
    overtakings += result.overtakings;
  }
  EXPECT_GT(overtakings, 0);
}

// A hundred short ones beside two that need half of all pages each for long: the fault that
// backfilling removes.
TEST(AdmissionSimulatorTest, ShortOnesPassTwoThatWouldTakeEverything) {
  Workload workload{.capacity = {64, 100, 64 + 100}};
  const SimulatedRequest large{.needs = {1, 60, 61}, .max_tokens = 10000, .tokens = 10000};
  workload.requests = {large, large};
  for (int i = 0; i < 100; ++i) {
    workload.requests.push_back({.arrival = 1 + i,
                                 .client = 1,
                                 .call = 2 + i,
                                 .needs = {1, 1, 2},
                                 .max_tokens = 20,
                                 .tokens = 20});
  }
  const SimulationResult before = Simulate(workload, AdmissionRule::kFirstCome);
  const SimulationResult after = Simulate(workload, AdmissionRule::kBackfilling);
  ASSERT_EQ(after.fault, "");
  for (int i = 2; i < 102; ++i) {
    EXPECT_GT(*before.wait[i], 9000);
    EXPECT_EQ(*after.wait[i], 0);
  }
  EXPECT_EQ(after.wait[1], before.wait[1]);
}

}  // namespace
}  // namespace hippodrome::admission_simulator_test
