// The rate at which a running server streams tokens over gRPC.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_SERVE_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_SERVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/bench/bench_report.h"

namespace hippodrome {

struct ServeBenchmark {
  std::string address;  // of the gRPC port, HOST:PORT
  std::string model;    // empty: the server's first
  int64_t streams = 32;
  int64_t prompt = 512;      // tokens of each prompt
  int64_t max_tokens = 256;  // of each stream
};

// Opens all streams at once and counts the tokens that arrive while every one of them decodes:
// after the last stream's first token, before the first stream's end. One result, "serve", in
// tokens/s. Errors: kUnavailable, or what the server answered; kFailedPrecondition when the streams
// never decode all together (max_tokens is too small for their prompts' time).
absl::StatusOr<BenchResult> BenchServe(const ServeBenchmark& benchmark);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_SERVE_H_
