// How the two convolutions of an H3 layer are computed for sequences of some length.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_FORM_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_FORM_H_

#include "kernels/cpu/conv/fft_plans.h"
#include "kernels/cpu/conv/tile_convolution.h"
#include "kernels/cpu/h3/h3_convolution_weights.h"

namespace hippodrome::cpu {

// Must not outlive what it was made of.
class H3ConvolutionForm {
 public:
  H3ConvolutionForm(ThreadPool& pool, FftPlans& plans, const H3ConvolutionKernels& weights,
                    int64_t tokens);

  int64_t tokens() const { return tokens_; }
  const H3ConvolutionLayout& layout() const { return weights_.layout(); }
  const TileConvolution& shift() const { return shift_; }
  const TileConvolution& diagonal() const { return diagonal_; }
  TileKernel ShiftKernel(int64_t group, int64_t channel_block) const;
  TileKernel DiagonalKernel(int64_t group, int64_t row_block) const;

 private:
  int64_t tokens_;
  const H3ConvolutionKernels& weights_;
  const FftPlan* shift_plan_;  // null for direct sums
  const FftPlan* diagonal_plan_;
  const float* shift_spectra_;
  const float* diagonal_spectra_;
  TileConvolution shift_;
  TileConvolution diagonal_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_FORM_H_
