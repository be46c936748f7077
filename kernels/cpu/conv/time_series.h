// Some channels of a sequence in the order in which an SSM runs through time.
#ifndef HIPPODROME_KERNELS_CPU_CONV_TIME_SERIES_H_
#define HIPPODROME_KERNELS_CPU_CONV_TIME_SERIES_H_

#include <cstdint>

namespace hippodrome::cpu {

// Row t, of `width` floats, starts t * step floats after `first`. The step is negative in reversed
// time.
struct TimeSeries {
  float* first;
  int64_t step;
  int64_t tokens;
  int64_t width;

  float* Row(int64_t t) const { return first + t * step; }
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_TIME_SERIES_H_
