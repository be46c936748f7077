// Sums of rows into the rows of a table.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_SCATTER_ROWS_H_
#define HIPPODROME_KERNELS_CUDA_ROWS_SCATTER_ROWS_H_

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// The contract of TrainingBackend::ScatterRows. dy, dtable: f32; indices: kI32.
void ScatterRows(Device& device, Tensor dy, Tensor indices, Tensor dtable);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_SCATTER_ROWS_H_
