// Channels of a matrix of activations as series.
#ifndef HIPPODROME_KERNELS_CPU_CONV_CHANNEL_SERIES_H_
#define HIPPODROME_KERNELS_CPU_CONV_CHANNEL_SERIES_H_

#include "kernels/backend.h"
#include "kernels/cpu/base/tensor_memory.h"
#include "kernels/cpu/conv/time_series.h"

namespace hippodrome::cpu {

// Channels [begin, begin + width) of sequence b of `tokens` rows, in the order of `direction`.
inline TimeSeries ChannelSeries(const Tensor& matrix, int64_t tokens, int64_t b, int64_t begin,
                                int64_t width, Direction direction) {
  const bool forward = direction == Direction::kForward;
  const int64_t first = b * tokens + (forward ? 0 : tokens - 1);
  return {.first = F32Row(matrix, first) + begin,
          .step = forward ? matrix.stride : -matrix.stride,
          .tokens = tokens,
          .width = width};
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_CHANNEL_SERIES_H_
