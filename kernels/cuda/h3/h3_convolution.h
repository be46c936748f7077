// H3 layers over whole sequences from empty states, and the gradients of that, as
// TrainingBackend::H3Convolution and H3ConvolutionBackward say. Both SSMs are convolutions of
// convolution.h; between them are products of rows.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_CONVOLUTION_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_CONVOLUTION_H_

#include "kernels/cuda/conv/convolution.h"
#include "kernels/ssm/head_loop.h"

namespace hippodrome::cuda {

// The kernels of one layer, skips added to their first points.
class H3ConvolutionKernels final : public H3ConvolutionWeights {
 public:
  // `activations`: kBF16 or kF32, the dtype of qkv and o; `loop`: over heads, on the host.
  H3ConvolutionKernels(Device& device, const H3Parameters& parameters, int64_t longest,
                       DType activations, const HeadLoop& loop = OneAfterAnother);

  int64_t bytes() const override { return shift_.bytes() + diagonal_.bytes(); }

  int64_t d_model() const { return shift_.heads(); }
  int64_t head_dim() const { return d_model() / diagonal_.heads(); }
  int64_t longest() const { return diagonal_.count(); }
  H3OutputOrder output_order() const { return output_order_; }
  DType activations() const { return activations_; }
  const ConvolutionKernels& shift() const { return shift_; }        // of d channels
  const ConvolutionKernels& diagonal() const { return diagonal_; }  // of H heads

 private:
  H3OutputOrder output_order_;
  DType activations_;
  ConvolutionKernels shift_;
  ConvolutionKernels diagonal_;
};

struct H3KernelGradients final : H3Gradients {
  H3KernelGradients(Device& device, const H3ConvolutionKernels& constants)
      : taps(device, constants.shift().heads(), constants.shift().count()),
        kernels(device, constants.diagonal().heads(), constants.longest()) {}

  KernelGradientSums taps;
  KernelGradientSums kernels;
};

void H3Convolution(Device& device, const H3ConvolutionKernels& constants, Tensor qkv,
                   int64_t sequences, Tensor o);

// `sums`: of these constants.
void H3ConvolutionBackward(Device& device, const H3ConvolutionKernels& constants, Tensor qkv,
                           int64_t sequences, Tensor d_o, const Gradient& dqkv,
                           H3KernelGradients& sums);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_CONVOLUTION_H_
