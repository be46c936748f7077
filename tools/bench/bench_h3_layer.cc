#include <algorithm>
#include <memory>
#include <numeric>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/h3/h3_prefill.h"
#include "kernels/cpu/h3/h3_step.h"
#include "tools/bench/bench_kernels.h"
#include "tools/bench/best_time.h"
#include "tools/bench/h3_layer_parameters.h"

namespace hippodrome {
namespace {

constexpr int64_t kWidth = 768;
constexpr int64_t kState = H3LayerParameters::kState;
constexpr int64_t kModes = H3LayerParameters::kModes;
constexpr int64_t kSlots = 512;  // 200 MB of states
constexpr int kRounds = 4;

class LayerBenchmark {
 public:
  LayerBenchmark(const Ceilings& ceilings, const CpuOptions& cpu)
      : ceilings_(ceilings),
        pool_(MakeThreadPool(cpu)),
        constants_(*pool_, H3LayerParameters(kWidth).view()),
        state_(constants_, kSlots) {}

  // From an empty state: 64 taps, the transforms, and the state.
  BenchResult Sequence(int64_t tokens) {
    const OwnedTensor qkv = Activations(tokens);
    const OwnedTensor o = cpu::NewMatrix(tokens, kWidth, DType::kF32);
    const std::vector<SequencePart> parts = WholeSequences(1, tokens);
    BestTime time;
    for (int round = 0; round < kRounds; ++round) {
      state_.Reset(0);
      time.Run([&] { cpu::H3Sequence(*pool_, constants_, qkv, state_, {parts, {}}, o); });
    }
    const double flops = 2 * kState + 8.5 * 9 + 11 + 4 * kModes;
    return Result("h3_sequence", tokens, 1, time.seconds(), flops / ceilings_.f32_flops);
  }

  // A round goes through all slots, which exceed the caches, at each position of a block of the
  // look-ahead.
  BenchResult Step(int64_t batch) {
    const OwnedTensor qkv = Activations(batch);
    const OwnedTensor o = cpu::NewMatrix(batch, kWidth, DType::kF32);
    const OwnedTensor slots = cpu::NewMatrix(1, batch, DType::kI32);
    const OwnedTensor positions = cpu::NewMatrix(1, batch, DType::kI32);
    std::vector<int32_t> indices(static_cast<size_t>(batch));
    for (int64_t slot = 0; slot < kSlots; ++slot) state_.Reset(slot);
    BestTime time;
    for (int32_t round = 0; round < kRounds; ++round) {
      time.Run([&] {
        for (int32_t i = 0; i < cpu::kScanSteps; ++i) {
          const auto position = static_cast<int32_t>(round * cpu::kScanSteps + i);
          cpu::CopyIn(std::vector<int32_t>(static_cast<size_t>(batch), position), positions);
          for (int32_t first = 0; first < kSlots; first += static_cast<int32_t>(batch)) {
            std::iota(indices.begin(), indices.end(), first);
            cpu::CopyIn(indices, slots);
            cpu::H3Step(*pool_, constants_, qkv, state_, slots, positions, o);
          }
        }
      });
    }
    const double steps = static_cast<double>(kSlots * cpu::kScanSteps);
    return Result("h3_step", 1, batch, time.seconds() * static_cast<double>(batch) / steps,
                  static_cast<double>(state_.bytes_per_step()) / kWidth / ceilings_.read_bytes);
  }

 private:
  static OwnedTensor Activations(int64_t rows) {
    OwnedTensor qkv = cpu::NewMatrix(rows, 3 * kWidth, DType::kF32);
    cpu::CopyIn(std::vector<float>(static_cast<size_t>(rows * 3 * kWidth), 0.5f), qkv);
    return qkv;
  }

  BenchResult Result(const std::string& name, int64_t length, int64_t batch, double run_seconds,
                     double least_seconds_per_point) const {
    const auto points = static_cast<double>(kWidth * length * batch);
    const double seconds = run_seconds / points;
    return {.name = name,
            .length = length,
            .batch = batch,
            .value = 1e9 * seconds,
            .unit = "ns/point",
            .limit = 1e9 * least_seconds_per_point,
            .fraction = least_seconds_per_point / seconds};
  }

  const Ceilings& ceilings_;
  std::shared_ptr<ThreadPool> pool_;
  cpu::H3PrefillWeights constants_;
  cpu::H3Slots state_;
};

}  // namespace

std::vector<BenchResult> BenchH3Layer(const Ceilings& ceilings, const CpuOptions& cpu) {
  LayerBenchmark layer(ceilings, cpu);
  std::vector<BenchResult> results;
  for (const int64_t tokens : {64, 512, 4096}) results.push_back(layer.Sequence(tokens));
  for (const int64_t batch : {1, 8, 32}) results.push_back(layer.Step(batch));
  return results;
}

}  // namespace hippodrome
