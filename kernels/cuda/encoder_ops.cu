// The operations of CudaBackend that encoders use; each forwards to the file of its name.
#include "kernels/cuda/attention_bidirectional.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/gather_rows.h"
#include "kernels/cuda/long_conv.h"
#include "kernels/cuda/mean_pool.h"

namespace hippodrome {

std::unique_ptr<LongConvWeights> CudaBackend::PrepareLongConv(const LongConvParameters& parameters,
                                                              int64_t longest, DType weights) {
  const DType activations = weights == DType::kBF16 ? DType::kBF16 : DType::kF32;
  return std::make_unique<cuda::LongConvConstants>(device_, parameters, longest, activations);
}

// The handle was made by this backend, hence the cast.
void CudaBackend::LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences,
                           Direction direction, Tensor y) {
  cuda::LongConv(
      device_, {static_cast<const cuda::LongConvConstants&>(weights), u, sequences, direction, y});
}

void CudaBackend::BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                         Tensor o) {
  cuda::BidirectionalAttention(device_, {shape, qkv, mask, o});
}

void CudaBackend::MeanPool(Tensor x, Tensor mask, Tensor y) { cuda::MeanPool(device_, x, mask, y); }

void CudaBackend::GatherRows(Tensor x, Tensor rows, Tensor y) {
  cuda::GatherRows(device_, x, rows, y);
}

}  // namespace hippodrome
