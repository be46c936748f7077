#include "tools/bench/bench_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tools/bench/bench_encode.h"
#include "tools/bench/bench_generate.h"

namespace hippodrome::bench_compare_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// One work of 12 tokens, whose rounds take what they are told to.
class ScriptedModel final : public TimedModel {
 public:
  ScriptedModel(DType weights, std::vector<double> seconds) : seconds_(std::move(seconds)) {
    works_.push_back({.name = "work",
                      .length = 6,
                      .batch = 2,
                      .tokens = 12,
                      .weights = weights,
                      .cost = {.flops = 10, .bytes = 24e6}});
  }
  absl::Status RunRound() override {
    works_[0].seconds.push_back(seconds_[works_[0].seconds.size()]);
    return absl::OkStatus();
  }
  const std::vector<TimedWork>& works() const override { return works_; }

 private:
  std::vector<double> seconds_;
  std::vector<TimedWork> works_;
};

Machine TestMachine() {
  return {.backend = MakeCpuBackend({.threads = 1}),
          .name = "test",
          .measure_ceilings = [](OfRuns) { return Ceilings{1, 1e15, 10, 20, 40}; }};
}

int64_t MegabytesOf(DType weights) { return static_cast<int64_t>(SizeOf(weights)) * 1'000'000; }

// Models that take these seconds, and an error for others.
CompareBenchmark Scripted(const std::map<DType, std::vector<double>>& seconds) {
  const auto make = [seconds](Backend&,
                              DType weights) -> absl::StatusOr<std::unique_ptr<TimedModel>> {
    if (!seconds.contains(weights)) return Unimplemented("no such weights");
    return std::make_unique<ScriptedModel>(weights, seconds.at(weights));
  };
  return {.make = make, .weight_bytes = MegabytesOf, .repeats = 3};
}

TEST(BenchCompareTest, GivesMediansAndRatiosOfRounds) {
  Machine machine = TestMachine();
  // The last round of both is slow: noise. Of the int8 model one more is.
  const auto report =
      BenchCompare(machine, Scripted({{DType::kBF16, {2, 2, 12}}, {DType::kI8, {1, 4, 4}}}));
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->results, SizeIs(2));
  const BenchResult& bf16 = report->results[0];
  EXPECT_EQ(bf16.weights, "bf16");
  EXPECT_EQ(bf16.value, 6);
  EXPECT_EQ(bf16.limit, 24);
  EXPECT_EQ(bf16.fraction, 0.25);
  EXPECT_EQ(bf16.spread->least, 1);
  EXPECT_EQ(bf16.spread->most, 6);
  EXPECT_EQ(*bf16.to_bf16, 1);
  const BenchResult& int8 = report->results[1];
  EXPECT_EQ(int8.weights, "int8");
  EXPECT_EQ(int8.value, 3);
  EXPECT_EQ(*int8.to_bf16, 2);  // of 2, 0.5 and 3
}

TEST(BenchCompareTest, TypesThatTheBackendLacksAreLeftOutUnlessAskedFor) {
  Machine machine = TestMachine();
  CompareBenchmark benchmark = Scripted({{DType::kF32, {1, 1, 1}}});
  const auto report = BenchCompare(machine, benchmark);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->results, SizeIs(1));
  EXPECT_FALSE(report->results[0].to_bf16.has_value());
  benchmark.weights = {DType::kF32, DType::kI8};
  EXPECT_EQ(BenchCompare(machine, benchmark).status().message(), "no such weights");
}

TEST(BenchCompareTest, SaysWhereAllDoNotFit) {
  Machine machine = TestMachine();
  int64_t free = 17'000'000;
  machine.free_memory = [&] { return std::exchange(free, free - 5'000'000); };
  // Asked four times: before the f32 model twice, and behind it, which took 1 MB beside its 4.
  const auto report =
      BenchCompare(machine, Scripted({{DType::kF32, {1, 1, 1}}, {DType::kBF16, {1, 1, 1}}}));
  EXPECT_EQ(report.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(report.status().message(),
            "not all models fit into memory: that with bf16 weights needs 3 MB, 2 MB are free; "
            "expected fewer types or smaller batches");
}

TEST(BenchCompareTest, ComparesDecodersAndEncoders) {
  Machine machine = TestMachine();
  const GenerateBenchmark decoder{
      .config = TinyConfig(), .prompt = 20, .batches = {1, 3}, .repeats = 2};
  const auto decoded = BenchCompare(machine, {.make =
                                                  [&](Backend& backend, DType weights) {
                                                    GenerateBenchmark one = decoder;
                                                    one.weights = weights;
                                                    return MakeTimedDecoder(backend, one);
                                                  },
                                              .weight_bytes = MegabytesOf,
                                              .repeats = 2});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(decoded->results, SizeIs(3 * std::size(kWeightTypes)));
  const auto encoded =
      BenchCompare(machine, {.make =
                                 [](Backend& backend, DType weights) {
                                   return MakeTimedEncoder(backend, {.config = TinyBigsConfig(),
                                                                     .weights = weights,
                                                                     .lengths = {7},
                                                                     .batches = {1, 2}});
                                 },
                             .weight_bytes = MegabytesOf,
                             .weights = {DType::kI8, DType::kBF16},
                             .repeats = 2});
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  ASSERT_THAT(encoded->results, SizeIs(4));
  EXPECT_EQ(encoded->results[0].weights, "int8");
  EXPECT_EQ(*encoded->results[2].to_bf16, 1);
}

TEST(CompareTableTest, HasARowForEachTypeAndAColumnForEachWork) {
  std::vector<BenchResult> results;
  for (const char* weights : {"f32", "bf16"}) {
    for (const int64_t batch : {1, 32}) {
      results.push_back({.name = "decode",
                         .length = 512,
                         .batch = batch,
                         .weights = weights,
                         .value = 100.25,
                         .fraction = 0.5,
                         .bytes_per_token = 1.5e6,
                         .spread = Spread{90, 100, 110},
                         .to_bf16 = 0.75});
    }
  }
  EXPECT_EQ(CompareTable(results),
            "             decode 1x512    decode 32x512\n"
            "tokens/s, median\n"
            "  f32               100.2            100.2\n"
            "  bf16              100.2            100.2\n"
            "tokens/s, slowest..fastest round\n"
            "  f32         90.0..110.0      90.0..110.0\n"
            "  bf16        90.0..110.0      90.0..110.0\n"
            "of the limit\n"
            "  f32              50.0 %           50.0 %\n"
            "  bf16             50.0 %           50.0 %\n"
            "times bf16\n"
            "  f32                0.75             0.75\n"
            "  bf16               0.75             0.75\n"
            "MB/token\n"
            "  f32               1.500            1.500\n"
            "  bf16              1.500            1.500\n");
  for (BenchResult& result : results) {
    result.spread.reset();
    result.to_bf16.reset();
  }
  EXPECT_THAT(CompareTable(results), Not(HasSubstr("slowest")));
  EXPECT_THAT(CompareTable(results), Not(HasSubstr("times bf16")));
}

}  // namespace
}  // namespace hippodrome::bench_compare_test
