// Speed of an encoder with random weights.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_ENCODE_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_ENCODE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/bigs_config.h"
#include "kernels/dtype.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/timed_model.h"
#include "tools/limits/device_ceilings.h"

namespace hippodrome {

struct EncodeBenchmark {
  BigsConfig config;
  DType weights = DType::kBF16;
  std::vector<int64_t> lengths;  // tokens of each input
  std::vector<int64_t> batches;  // inputs that run together; each with each length
  int repeats = 3;               // rounds, interleaved; the best of each result counts
};

// With P = max_position_embeddings: inputs of P tokens, 1 and 8 of them together, or where P > 512
// single ones of 512 and of P tokens.
EncodeBenchmark DefaultEncodeBenchmark(const BigsConfig& config);

// "encode" for each length and batch: what a server does for a request, from ids to the answer of
// the head for one token or for the whole of each input (the mean where there is no head). Limits
// as of EncodeCost(). Errors: of making the model; kOutOfRange for inputs longer than it takes.
absl::StatusOr<std::unique_ptr<TimedModel>> MakeTimedEncoder(Backend& backend,
                                                             const EncodeBenchmark& benchmark);

// These, the fastest of `repeats` rounds, and where their time goes. Errors: the same.
absl::StatusOr<BenchReport> BenchEncode(Machine& machine, const EncodeBenchmark& benchmark);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_ENCODE_H_
