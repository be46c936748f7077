// The kernels of a convolution whose channels share them by heads.
#ifndef HIPPODROME_KERNELS_CPU_LONG_CONV_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_LONG_CONV_WEIGHTS_H_

#include <map>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/fft_plan.h"

namespace hippodrome::cpu {

// Kernels of H heads with their skip, K[0] + D, K[1], ..., as taps and as spectra.
class SharedKernels final : public LongConvWeights {
 public:
  SharedKernels(const SharedSsmParameters& parameters, int64_t longest);

  int64_t longest() const override { return longest_; }
  int64_t bytes() const override;

  int64_t channels() const { return channels_; }
  int64_t heads() const { return heads_; }
  // The taps of one head as ToeplitzProduct() reads them: the kernel backwards from here, zeros
  // after it.
  const float* Taps(int64_t head) const;
  // The spectra of all heads in the order of FftPlan::Spectrum(), [H, plan.length(), re | im],
  // computed at the first use of a length. Not safe for concurrent use.
  const float* Spectra(const FftPlan& plan) const;

 private:
  int64_t TapsOfHead() const;

  int64_t channels_;
  int64_t heads_;
  int64_t longest_;
  std::vector<float> taps_;
  mutable std::map<int64_t, std::vector<float>> spectra_;  // by the length of their transform
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_LONG_CONV_WEIGHTS_H_
