// The plans of all transform lengths in use: every layer shares them.
#ifndef HIPPODROME_KERNELS_CPU_CONV_FFT_PLANS_H_
#define HIPPODROME_KERNELS_CPU_CONV_FFT_PLANS_H_

#include <map>

#include "kernels/cpu/conv/fft_plan.h"

namespace hippodrome::cpu {

// Not safe for concurrent use.
class FftPlans {
 public:
  // The plan of length FftPlan::LengthFor(points), made at its first use, valid while this lives.
  const FftPlan& For(int64_t points) {
    const int64_t length = FftPlan::LengthFor(points);
    return plans_.try_emplace(length, length).first->second;
  }

 private:
  std::map<int64_t, FftPlan> plans_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_FFT_PLANS_H_
