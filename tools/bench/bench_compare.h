// One model with weights of several types, side by side.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_COMPARE_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_COMPARE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/timed_model.h"
#include "tools/limits/device_ceilings.h"

namespace hippodrome {

struct CompareBenchmark {
  // The model with weights of a type, on a backend that outlives it. kUnimplemented: the backend
  // has no products with them.
  std::function<absl::StatusOr<std::unique_ptr<TimedModel>>(Backend&, DType)> make;
  std::function<int64_t(DType)> weight_bytes;  // of its matrices
  std::vector<DType> weights;                  // none: all that the backend has
  int repeats = 5;  // rounds, in each of which all models run; medians count
};

// The rates of each work of the models, by type of weights, to_bf16 included where that is among
// them: the median of the ratios of each round, whose parts met the same noise. All models are in
// memory at once. Errors: of making one, and of a round; kResourceExhausted where less memory is
// free than the next needs, its weights and what the models before took beside theirs.
absl::StatusOr<BenchReport> BenchCompare(Machine& machine, const CompareBenchmark& benchmark);

// A row for each type of weights and a column for each work, as of BenchCompare(), in sections:
// rates, the slowest and fastest round, parts of the limit, ratios to bf16, bytes per token. What
// there is not is left out.
std::string CompareTable(const std::vector<BenchResult>& results);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_COMPARE_H_
