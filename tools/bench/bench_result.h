// What a benchmark measured, beside what the machine allows.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_RESULT_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_RESULT_H_

#include <cstdint>
#include <string>

namespace hippodrome {

struct BenchResult {
  std::string name;    // "prefill", "decode", "fft_conv", ...
  int64_t length = 0;  // tokens or points
  int64_t batch = 1;
  std::string weights;  // "f32", "bf16"; empty where there are none
  double value = 0;
  std::string unit;     // "tokens/s", "ns/point", ...
  double limit = 0;     // the best `value` that the ceilings of the same run allow; 0: none known
  double fraction = 0;  // of the limit that was reached; 0: no limit known
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_RESULT_H_
