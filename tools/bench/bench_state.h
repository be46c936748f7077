// What it costs to fork, export, import and keep the state of a sequence.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_STATE_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_STATE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/config/config.h"
#include "kernels/dtype.h"
#include "tools/bench/bench_report.h"
#include "tools/limits/device_ceilings.h"

namespace hippodrome {

struct StateBenchmark {
  H3Config config;
  DType weights = DType::kBF16;
  int64_t tokens = 1024;  // that are in the state
  int64_t rest = 96;      // of a prompt whose first `tokens` were met before
  int repeats = 9;        // the best counts
};

// Milliseconds. "copy": of the state's bytes, from memory to memory, by one thread. Beside it, with
// the copy's time as limit: "export", "import", and "write" and "read" of a file, checksum
// included; and "fork", whose limit is a copy of the slot, since pages are shared. "miss" and
// "hit": to the first token of a prompt of `tokens` + `rest`, cold, and where the state after most
// of it is in the prefix tree; the limit of a hit is that part of the miss. "choices": to the
// scores of 64 texts of 16 tokens behind one of `tokens`, which is taken in once; the limit is that
// and the texts alone. "ragged": to the first tokens of 32 prompts of `tokens`, which the tree has,
// and 1 to 63 more; the limit is where all have 32 more. "cold", by length: of a prompt that nobody
// asked before, where the tree keeps states of it; the limit is without a tree. Errors: of making
// the model or its state.
absl::StatusOr<BenchReport> BenchState(Machine& machine, const StateBenchmark& benchmark);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_STATE_H_
