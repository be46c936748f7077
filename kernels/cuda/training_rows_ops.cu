// The training operations of CudaBackend on rows; each forwards to the file of its name.
#include "kernels/cuda/activate.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/mean_pool.h"
#include "kernels/cuda/scatter_rows.h"

namespace hippodrome {

void CudaBackend::LayerNormBackward(Tensor x, Tensor gamma, double epsilon, Tensor dy, Gradient dx,
                                    Tensor dgamma, Tensor dbeta) {
  cuda::LayerNormBackward(device_, x, gamma, epsilon, dy, dx, dgamma, dbeta);
}

void CudaBackend::ActivateBackward(Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                                   Gradient dgate) {
  cuda::ActivateBackward(device_, x, epilogue, dy, dx, dgate);
}

void CudaBackend::ScatterRows(Tensor dy, Tensor indices, Tensor dtable) {
  cuda::ScatterRows(device_, dy, indices, dtable);
}

void CudaBackend::MeanPoolBackward(Tensor mask, Tensor dy, Gradient dx) {
  cuda::MeanPoolBackward(device_, mask, dy, dx);
}

void CudaBackend::Drop(double p, uint64_t seed, Tensor x) { cuda::Drop(device_, p, seed, x); }

}  // namespace hippodrome
