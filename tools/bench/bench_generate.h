// Speed of prefill and decode of a model with random weights.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_GENERATE_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_GENERATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/config.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/dtype.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/timed_model.h"
#include "tools/limits/device_ceilings.h"
#include "tools/limits/model_cost.h"

namespace hippodrome {

struct GenerateBenchmark {
  H3Config config;
  DType weights = DType::kBF16;
  DType h3_state = DType::kF32;  // of GeneratorOptions
  int64_t prompt = 512;          // tokens of each prompt
  std::vector<int64_t> batches = {1, 32};
  int repeats = 3;  // rounds, interleaved; the best of each result counts
};

// A model with random weights.
absl::StatusOr<std::unique_ptr<HybridH3>> LoadBenchModel(Backend& backend, const H3Config& config,
                                                         DType weights);

// Enough for the keys and values of `tokens` tokens.
int64_t KeyValueBytes(const H3Config& config, int64_t tokens);

// "prefill" of one prompt, and "decode" for each batch, tokens of all sequences together; there is
// room for `repeats` rounds. Errors: of making the model or its state.
absl::StatusOr<std::unique_ptr<TimedModel>> MakeTimedDecoder(Backend& backend,
                                                             const GenerateBenchmark& benchmark);

// These, the fastest of `repeats` rounds, and where their time goes. Errors: the same.
absl::StatusOr<BenchReport> BenchGenerate(Machine& machine, const GenerateBenchmark& benchmark);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_GENERATE_H_
