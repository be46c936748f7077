#include "tools/device_model/modelled_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/device_error.h"
#include "tests/testing/random_model.h"
#include "tools/bench/bench_device_kernels.h"
#include "tools/bench/bench_encode.h"
#include "tools/bench/bench_generate.h"
#include "tools/compare/forwarding_backend.h"
#include "tools/convert/models/bigs_presets.h"
#include "tools/convert/models/h3_presets.h"
#include "tools/device_model/launch_time.h"

namespace hippodrome::modelled_machine_test {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::SizeIs;

Machine H100() { return *OpenModelledMachine("h100"); }

// As kernels were when a device measured them: none asked for what the product behind it reads, and
// LayerNorm was always a launch of its own.
class UnexpectingBackend final : public ForwardingBackend {
 public:
  explicit UnexpectingBackend(std::unique_ptr<Backend> inner)
      : ForwardingBackend(*inner), owned_(std::move(inner)) {}

  void ExpectLinear(const LinearWeights&) override {}
  void Replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) override {
    owned_->Replay(graph, work);
  }

 private:
  std::unique_ptr<Backend> owned_;
};

// As on an H100: tests/benchmarks/gpu-results.json.
MATCHER_P2(IsNear, measured, part, "") {
  *result_listener << "measured " << measured;
  return arg >= (1 - part) * measured && arg <= (1 + part) * measured;
}

TEST(ModelledMachineTest, TimeGoesByWhatIsPredicted) {
  const Machine machine = H100();
  Backend& b = *machine.backend;
  EXPECT_EQ(machine.clock(), 0);
  const OwnedTensor x = b.NewTensor(16384, 2048);
  const OwnedTensor gamma = b.NewTensor(1, 2048);
  const OwnedTensor y = b.NewActivations(16384, 2048, DType::kBF16);
  EXPECT_EQ(machine.clock(), 0);
  b.LayerNorm(x, gamma, gamma, 1e-5, y);
  EXPECT_THAT(machine.clock(), IsNear(136.5e-6, 0.35));  // before rows were taken in a loop
  EXPECT_THAT(machine.seconds_by_bound().at("layer_norm (DRAM)"), IsNear(machine.clock(), 0.05));
}

// Seconds of a LayerNorm and the library's product behind it, of 64 rows.
double ProductBehindNorm(const std::string& device, int64_t out, bool expected) {
  const Machine machine = *OpenModelledMachine(device);
  Backend& b = *machine.backend;
  const HostMatrix matrix = {.data = nullptr, .dtype = DType::kBF16, .rows = out, .cols = 2048};
  const auto w = b.PackLinear({&matrix, 1}, DType::kBF16);
  const OwnedTensor x = b.NewTensor(64, 2048);
  const OwnedTensor gamma = b.NewTensor(1, 2048);
  const OwnedTensor u = b.NewActivations(64, 2048, DType::kBF16);
  const OwnedTensor y = b.NewActivations(64, out, DType::kBF16);
  if (expected) b.ExpectLinear(*w);
  b.LayerNorm(x, gamma, gamma, 1e-5, u);
  b.Linear(u, *w, {}, y);
  b.LayerNorm(x, gamma, gamma, 1e-5, u);
  b.Linear(u, *w, {}, y);  // of which nothing is said
  return machine.clock();
}

// Before sm_90 nothing can be asked for; of large weights 24 MB at most.
TEST(ModelledMachineTest, WeightsThatAreAskedForComeWhileTheProductStarts) {
  for (const int64_t out : {2048, 8192, 65536}) {
    EXPECT_EQ(ProductBehindNorm("a100", out, true), ProductBehindNorm("a100", out, false));
    for (const char* device : {"h100", "h200"}) {
      const double rate = RatesOf(device)->dram_bytes;
      const double saved =
          ProductBehindNorm(device, out, false) - ProductBehindNorm(device, out, true);
      EXPECT_GT(saved, 1e-6) << device << " " << out;
      EXPECT_LE(saved, std::min<double>(24 << 20, 2 * 2048 * out) / rate) << device << " " << out;
    }
  }
}

TEST(ModelledMachineTest, DecodesAsFastAsAnH100) {
  Machine machine = H100();
  machine.backend = std::make_unique<UnexpectingBackend>(std::move(machine.backend));
  GenerateBenchmark benchmark = {.config = *H3Preset("h3-125m"), .repeats = 1};
  benchmark.batches = {1, 64, 256};
  const auto report = BenchGenerate(machine, benchmark);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->results, SizeIs(4));
  EXPECT_THAT(report->results[0].value, IsNear(481172.0, 0.15));
  EXPECT_THAT(report->results[1].value, IsNear(3090.0, 0.25));
  EXPECT_THAT(report->results[2].value, IsNear(109522.0, 0.15));
  EXPECT_THAT(report->results[3].value, IsNear(266631.0, 0.15));
  const Shares& bounds = report->shares.at("decode batch 64, by what bounds it");
  EXPECT_NEAR(std::accumulate(bounds.begin(), bounds.end(), 0.0,
                              [](double sum, const auto& share) { return sum + share.second; }),
              1, 1e-9);
  for (const auto& [bound, share] : bounds) EXPECT_THAT(share, AllOf(Ge(0), Le(1))) << bound;
}

TEST(ModelledMachineTest, EncodesAsFastAsAnH100) {
  Machine machine = H100();
  BigsConfig config = *BigsPreset("bigs-512");
  config.num_hidden_layers = 2;  // all are alike
  const EncodeBenchmark benchmark = {
      .config = config, .lengths = {512}, .batches = {8}, .repeats = 1};
  const auto report = BenchEncode(machine, benchmark);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->results[0].fraction, AllOf(Ge(0.2), Le(0.5)));
}

TEST(ModelledMachineTest, OperationsSayWhatBoundsThem) {
  const Machine machine = H100();
  const auto results = BenchOperations(machine, {}, machine.measure_ceilings(OfRuns::kBest));
  ASSERT_FALSE(results.empty());
  for (const BenchResult& result : results) {
    EXPECT_THAT(result.fraction, AllOf(Ge(0.01), Le(1.0))) << result.name;
    EXPECT_FALSE(result.bound_by.empty()) << result.name;
  }
}

TEST(ModelledMachineTest, WhatIsNotCountedIsRefused) {
  Machine machine = H100();
  GenerateBenchmark benchmark = {.config = TinyConfig()};
  benchmark.weights = DType::kF32;
  EXPECT_EQ(BenchGenerate(machine, benchmark).status().code(), absl::StatusCode::kUnimplemented);
  benchmark.weights = DType::kBF16;
  benchmark.config.d_state = 32;
  try {
    (void)BenchGenerate(machine, benchmark);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("d_state 64"));
  }
}

}  // namespace
}  // namespace hippodrome::modelled_machine_test
