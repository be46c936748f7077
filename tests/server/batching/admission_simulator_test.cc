// Random workloads: what admission.h promises holds in each of them.
// HIPPODROME_ADMISSION_WORKLOADS says how many (default: 5000).
#include "tests/testing/admission_simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

namespace hippodrome::admission_simulator_test {
namespace {

uint64_t Workloads() {
  const char* const text = std::getenv("HIPPODROME_ADMISSION_WORKLOADS");
  return text == nullptr ? 5000 : std::strtoull(text, nullptr, 10);
}

// Each `of`-th call in the background; 0: none.
void PutInBackground(Workload& workload, int of) {
  for (SimulatedRequest& request : workload.requests) {
    request.background = of > 0 && request.call % of == 0;
  }
}

TEST(AdmissionSimulatorTest, PromisesAreKeptInEveryWorkload) {
  int64_t overtakings = 0;
  for (uint64_t seed = 0; seed < Workloads(); ++seed) {
    Workload workload = RandomWorkload(seed);
    PutInBackground(workload, static_cast<int>(seed % 4));
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

// Of the requests of client 1 that waited, sorted, the one that 99 % are no longer than.
int64_t Percentile99(const Workload& workload, const SimulationResult& result) {
  std::vector<int64_t> waits;
  for (size_t i = 0; i < workload.requests.size(); ++i) {
    if (workload.requests[i].client == 1) waits.push_back(*result.wait[i]);
  }
  std::sort(waits.begin(), waits.end());
  return waits[waits.size() * 99 / 100];
}

// 20 clients' requests at a time on average, where there is room for 64.
Workload OrdinaryLoad() {
  Workload workload{.capacity = {64, 1024, 64 + 1024}};
  for (int i = 0; i < 5000; ++i) {
    workload.requests.push_back({.arrival = 10 * i + i * i % 7,
                                 .client = 1,
                                 .call = i,
                                 .needs = {1, 8, 9},
                                 .prompt_tokens = 100,
                                 .max_tokens = 150 + i % 100,
                                 .prefill_speed = 8,
                                 .tokens = 150 + i % 100});
  }
  return workload;
}

// More than there is room for, all at the beginning.
Workload Flooded(Workload workload, bool background) {
  const std::vector<SimulatedRequest> others = std::move(workload.requests);
  workload.requests.clear();
  for (int i = 0; i < 1000; ++i) {
    workload.requests.push_back({.client = 2,
                                 .call = 10000,
                                 .needs = {1, 16, 17},
                                 .prompt_tokens = 10,
                                 .max_tokens = 1500,
                                 .tokens = 1500,
                                 .background = background});
  }
  workload.requests.insert(workload.requests.end(), others.begin(), others.end());
  return workload;
}

TEST(AdmissionSimulatorTest, AFloodInTheBackgroundKeepsNobodyWaiting) {
  const Workload alone = OrdinaryLoad();
  const Workload beside = Flooded(alone, true);
  const Workload against = Flooded(alone, false);
  const SimulationResult quiet = Simulate(alone, AdmissionRule::kBackfilling);
  const SimulationResult flooded = Simulate(beside, AdmissionRule::kBackfilling);
  const SimulationResult crowded = Simulate(against, AdmissionRule::kBackfilling);
  ASSERT_EQ(flooded.fault, "");
  EXPECT_EQ(Percentile99(alone, quiet), 0);
  EXPECT_EQ(Percentile99(beside, flooded), 0);
  EXPECT_GT(Percentile99(against, crowded), 0);
  for (const auto& wait : flooded.wait) EXPECT_TRUE(wait) << "the flood has run as well";
}

}  // namespace
}  // namespace hippodrome::admission_simulator_test
