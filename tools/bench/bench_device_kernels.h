// Speed of single operations of a backend, and of the gated convolution of a device.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_DEVICE_KERNELS_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_DEVICE_KERNELS_H_

#include <vector>

#include "tools/bench/bench_report.h"
#include "tools/limits/device_ceilings.h"

namespace hippodrome {

// Sizes of the operations that are timed.
struct OperationSizes {
  int64_t d_model = 2048;
  int64_t heads = 16;
  int64_t prompts = 16;   // sequences of a prefill
  int64_t tokens = 1024;  // of each
  int64_t batch = 256;    // sequences of a step, with a context of `tokens`
  int64_t vocab = 50264;
};

// Every operation of a layer and of a step, bf16, in seconds per call beside what its bytes or its
// arithmetic need. Works on any machine.
std::vector<BenchResult> BenchOperations(const Machine& machine, const OperationSizes& sizes,
                                         const Ceilings& ceilings);

// "gated_conv" and "gated_conv cufft": 64 sequences of 768 channels, bf16, for 256 to 32768 points,
// in ms, and their ratio "gated_conv / cufft". The limit moves four tensors once.
std::vector<BenchResult> BenchGatedConvolution(DeviceYardsticks& yardsticks,
                                               const Ceilings& ceilings);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_DEVICE_KERNELS_H_
