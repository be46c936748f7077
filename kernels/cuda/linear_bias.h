// Adding the bias of a product afterwards, where a library does not do so itself.
#ifndef HIPPODROME_KERNELS_CUDA_LINEAR_BIAS_H_
#define HIPPODROME_KERNELS_CUDA_LINEAR_BIAS_H_

#include "kernels/cuda/device.h"

namespace hippodrome::cuda {

// y_i = y_i + bias.  bias: [1, cols]; y: [rows, cols]; both f32.
void AddBias(Device& device, Tensor bias, Tensor y);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_LINEAR_BIAS_H_
