// The scenario of Table 7 of the H3 paper: a batch of prompts, then a fixed number of new tokens.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_TABLE7_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_TABLE7_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/config.h"
#include "tools/bench/bench_generate.h"

namespace hippodrome {

struct Table7Benchmark {
  H3Config config;  // the 1.3B shape in the paper
  DType weights = DType::kBF16;
  DType h3_state = DType::kF32;  // of GeneratorOptions
  int64_t batch = 64;
  int64_t new_tokens = 128;                          // of each sequence
  std::vector<int64_t> prompts = {512, 1024, 1536};  // tokens
  int repeats = 3;                                   // after one warm-up; their mean counts
};

// "table7" for each prompt length: new tokens per second, the time of the prompts included.
absl::StatusOr<BenchReport> BenchTable7(Machine& machine, const Table7Benchmark& benchmark);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_TABLE7_H_
