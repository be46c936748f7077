// The training operations of CpuBackend on rows; each forwards to the file of its forward.
#include "kernels/cpu/activate.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/layer_norm.h"
#include "kernels/cpu/mean_pool.h"
#include "kernels/cpu/scatter_rows.h"

namespace hippodrome {

void CpuBackend::LayerNormBackward(Tensor x, Tensor gamma, double epsilon, Tensor dy, Gradient dx,
                                   Tensor dgamma, Tensor dbeta) {
  cpu::LayerNormBackward(pool_, x, gamma, epsilon, dy, dx, dgamma, dbeta);
}

void CpuBackend::ActivateBackward(Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                                  Gradient dgate) {
  cpu::ActivateBackward(pool_, x, epilogue, dy, dx, dgate);
}

void CpuBackend::ScatterRows(Tensor dy, Tensor indices, Tensor dtable) {
  cpu::ScatterRows(pool_, dy, indices, dtable);
}

void CpuBackend::MeanPoolBackward(Tensor mask, Tensor dy, Gradient dx) {
  cpu::MeanPoolBackward(pool_, mask, dy, dx);
}

void CpuBackend::Drop(double p, uint64_t seed, Tensor x) { cpu::Drop(pool_, p, seed, x); }

}  // namespace hippodrome
