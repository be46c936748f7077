#include "tools/bench/bench_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::bench_state_test {
namespace {

using testing::ElementsAre;

TEST(BenchStateTest, EveryMoveIsComparedToACopy) {
  Machine machine{.backend = MakeCpuBackend({.threads = 1}), .name = "test"};
  machine.measure_ceilings = [](OfRuns) { return Ceilings{1, 1e15, 1e18, 1e18}; };
  const auto report = BenchState(
      machine,
      {.config = TinyConfig(), .weights = DType::kF32, .tokens = 80, .rest = 16, .repeats = 2});
  ASSERT_TRUE(report.ok()) << report.status();
  std::vector<std::string> names;
  std::vector<int64_t> cold, beside;
  for (const BenchResult& result : report->results) {
    names.push_back(result.name);
    if (result.name == "cold") {
      cold.push_back(result.length);
    } else if (result.name == "beside") {
      beside.push_back(result.length);
    } else {
      EXPECT_EQ(result.length, 80);
    }
    EXPECT_GT(result.value, 0) << result.name;
    EXPECT_NEAR(result.limit / result.value, result.fraction, 1e-9) << result.name;
  }
  names.resize(names.size() - beside.size());
  EXPECT_THAT(names,
              ElementsAre("copy", "copy_slot", "fork", "import", "copy_value", "export", "write",
                          "read", "miss", "hit", "choices", "ragged", "cold", "cold", "cold"));
  EXPECT_THAT(cold, ElementsAre(100, 500, 1000));
  EXPECT_THAT(beside, ElementsAre(8, 16, 32, 64, 128, 256));
}

}  // namespace
}  // namespace hippodrome::bench_state_test
