// The figures of a benchmark of a model, beside what the machine allows.
#ifndef HIPPODROME_TOOLS_BENCH_FIGURES_H_
#define HIPPODROME_TOOLS_BENCH_FIGURES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "tools/bench/bench_result.h"
#include "tools/bench/timing_backend.h"
#include "tools/limits/machine.h"
#include "tools/limits/model_cost.h"

namespace hippodrome {

// By operation: parts of a piece of work's time.
using Shares = std::map<std::string, double>;

struct Figures {
  Ceilings ceilings;
  std::vector<BenchResult> results;
  std::map<std::string, Shares> shares;  // by figure ("prefill", "decode batch 32")
};

// "bf16" or "f32".
std::string WeightsName(DType weights);

// What was run: so many tokens in so many seconds.
struct TimedWork {
  std::string name;  // "prefill"
  int64_t length = 0;
  int64_t batch = 1;
  double tokens = 0;
  double seconds = 0;
};

// Tokens per second, measured and possible.
BenchResult Rate(const TimedWork& work, const Cost& cost, DType weights, const Ceilings& ceilings);

// Where the time of a piece of work went that took `seconds` and was timed from the last Clear().
Shares SharesOf(const TimingBackend& timing, double seconds);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_FIGURES_H_
