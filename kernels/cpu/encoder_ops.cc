// The operations of CpuBackend on encoder layers; each forwards to the file of its name.
#include "kernels/cpu/bidirectional_attention.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/gather_rows.h"
#include "kernels/cpu/long_conv.h"
#include "kernels/cpu/long_conv_weights.h"
#include "kernels/cpu/mean_pool.h"

namespace hippodrome {

std::unique_ptr<LongConvWeights> CpuBackend::PrepareLongConv(const LongConvParameters& parameters,
                                                             int64_t longest, DType /*weights*/) {
  return std::make_unique<cpu::SharedKernels>(parameters, longest, cpu::LoopOn(pool_));
}

void CpuBackend::LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences,
                          Direction direction, Tensor y) {
  // Handles were made by this backend, hence the cast.
  cpu::ConvolveSequences(pool_, plans_, static_cast<const cpu::SharedKernels&>(weights), u,
                         sequences, direction, y);
}

void CpuBackend::BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                        Tensor o) {
  cpu::BidirectionalAttention(pool_, shape, qkv, mask, o);
}

void CpuBackend::MeanPool(Tensor x, Tensor mask, Tensor y) { cpu::MeanPool(pool_, x, mask, y); }

void CpuBackend::GatherRows(Tensor x, Tensor rows, Tensor y) { cpu::GatherRows(pool_, x, rows, y); }

}  // namespace hippodrome
