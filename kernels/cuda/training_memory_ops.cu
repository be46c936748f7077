// The training operations of CudaBackend on memory, and the optimizer; each forwards to the file of
// its name.
#include "kernels/cuda/adamw.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/elementwise.h"

namespace hippodrome {

void CudaBackend::Fill(float value, Tensor x) { cuda::Fill(device_, value, x); }

void CudaBackend::Copy(Tensor x, Tensor y) { cuda::Copy(device_, x, y); }

void CudaBackend::Add(Tensor x, Tensor y) { cuda::Add(device_, x, y); }

double CudaBackend::SumOfSquares(Tensor x) { return cuda::SumOfSquares(device_, x); }

void CudaBackend::AdamW(const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) {
  cuda::AdamW(device_, step, gradient, m, v, w);
}

void CudaBackend::MovingAverage(Tensor x, double decay, Tensor average) {
  cuda::MovingAverage(device_, x, decay, average);
}

}  // namespace hippodrome
