#include "tools/bench/bench_generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::bench_generate_test {
namespace {

using testing::SizeIs;

GenerateBenchmark Tiny() {
  return {.config = TinyConfig(),
          .weights = DType::kF32,
          .prompt = 20,
          .batches = {1, 3},
          .repeats = 2};
}

TEST(BenchGenerateTest, GivesRatesBytesAndShares) {
  Machine machine{.backend = MakeCpuBackend({.threads = 1}), .name = "test"};
  machine.measure_ceilings = [](OfRuns) { return Ceilings{1, 1e15, 1e18, 1e18}; };
  const auto report = BenchGenerate(machine, Tiny());
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->results, SizeIs(3));
  const BenchResult& prefill = report->results[0];
  EXPECT_EQ(prefill.name, "prefill");
  EXPECT_DOUBLE_EQ(prefill.bytes_per_token,
                   PrefillCost(TinyConfig(), 1, 20, DType::kF32).bytes / 20);
  for (const size_t i : {1, 2}) {
    const BenchResult& decode = report->results[i];
    EXPECT_EQ(decode.name, "decode");
    EXPECT_EQ(decode.batch, i == 1 ? 1 : 3);
    EXPECT_GT(decode.bytes_per_token, 0);
    ASSERT_TRUE(decode.spread.has_value());
    EXPECT_EQ(decode.spread->most, decode.value);
    EXPECT_LE(decode.spread->least, decode.spread->mean);
  }
  // Three sequences share the weights.
  EXPECT_LT(report->results[2].bytes_per_token, report->results[1].bytes_per_token);
  EXPECT_THAT(report->shares, SizeIs(3));
}

TEST(BenchGenerateTest, EachRoundAddsATimeToEachWork) {
  const auto backend = MakeCpuBackend({.threads = 1});
  const auto model = MakeTimedDecoder(*backend, Tiny());
  ASSERT_TRUE(model.ok()) << model.status();
  for (size_t round = 0; round < 2; ++round) {
    ASSERT_THAT((*model)->works(), SizeIs(3));
    for (const TimedWork& work : (*model)->works()) EXPECT_THAT(work.seconds, SizeIs(round));
    ASSERT_TRUE((*model)->RunRound().ok());
  }
}

}  // namespace
}  // namespace hippodrome::bench_generate_test
