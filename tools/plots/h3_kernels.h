// The convolution kernels of a model on disk.
#ifndef HIPPODROME_TOOLS_PLOTS_H3_KERNELS_H_
#define HIPPODROME_TOOLS_PLOTS_H3_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

struct H3LayerKernels {
  int64_t layer = 0;
  int64_t heads = 0;
  int64_t d_model = 0;
  std::vector<float> diagonal;  // [heads, length]: K[l] = 2 Re sum_n C_n dB_n dA_n^l
  std::vector<float> shift;     // [d_model, length]: the folded taps, zero beyond d_state
};

// The kernels of every H3 layer, `length` points each. Errors as of reading a model.
absl::StatusOr<std::vector<H3LayerKernels>> ReadH3Kernels(const std::string& directory,
                                                          int64_t length);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_PLOTS_H3_KERNELS_H_
