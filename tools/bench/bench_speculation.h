// What speculation is worth: drafts of a trained model's texts, replayed at another model's size.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_SPECULATION_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_SPECULATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/config.h"
#include "kernels/dtype.h"
#include "tools/bench/bench_report.h"
#include "tools/limits/device_ceilings.h"

namespace hippodrome {

struct SpeculationPrompt {
  std::string kind;  // what sort of text: "list"
  std::string text;
  double temperature = 0;
};

// A line for each: {"kind": TEXT, "prompt": TEXT, "temperature": X}, the last 0 where it is not
// there. Errors: kInvalidArgument, with the line.
absl::StatusOr<std::vector<SpeculationPrompt>> ParseSpeculationPrompts(std::string_view lines);

// A step of a text: how many tokens were drafted, and how many of them came true.
struct TracedStep {
  int32_t drafted = 0;
  int32_t accepted = 0;
};

struct SpeculationTrace {
  std::string kind;
  int64_t prompt = 0;  // tokens
  std::vector<TracedStep> steps = {};
};

// Continues each prompt by `tokens` tokens with the model in `directory`, one after the other.
// Errors: of loading it; kFailedPrecondition without a tokenizer.
absl::StatusOr<std::vector<SpeculationTrace>> TraceSpeculation(
    Backend& backend, const std::string& directory, const std::vector<SpeculationPrompt>& prompts,
    int64_t tokens);

struct SpeculationBenchmark {
  H3Config config;  // of random weights: what it chooses does not matter
  DType weights = DType::kBF16;
  std::vector<SpeculationTrace> traces;
  int repeats = 5;  // rounds, in which each trace is run with its drafts and token by token
};

// For each kind of text the rate of its steps token by token, and how many times as fast they are
// with drafts: medians of rounds; the limit of the latter is the tokens of a step. Errors: of
// making the model.
absl::StatusOr<BenchReport> BenchSpeculation(Machine& machine,
                                             const SpeculationBenchmark& benchmark);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_SPECULATION_H_
