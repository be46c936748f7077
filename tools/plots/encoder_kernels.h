// The convolution kernels of an encoder on disk.
#ifndef HIPPODROME_TOOLS_PLOTS_ENCODER_KERNELS_H_
#define HIPPODROME_TOOLS_PLOTS_ENCODER_KERNELS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace hippodrome {

// K[l] of Backend::PrepareLongConv(), without D.
struct EncoderKernels {
  int64_t layers = 0;
  int64_t heads = 1;  // H
  int64_t length = 0;
  std::vector<float> values;  // [layers, 2, H, length], forward before backward

  std::span<const float> Of(int64_t layer, Direction direction, int64_t head) const {
    const int64_t backward = direction == Direction::kBackward ? 1 : 0;
    const int64_t row = (2 * layer + backward) * heads + head;
    return std::span(values).subspan(static_cast<size_t>(row * length),
                                     static_cast<size_t>(length));
  }
};

// The kernels of every layer, `length` points each. Errors as of reading a model;
// kFailedPrecondition for one with attention in place of SSMs.
absl::StatusOr<EncoderKernels> ReadEncoderKernels(const std::string& directory, int64_t length);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_PLOTS_ENCODER_KERNELS_H_
