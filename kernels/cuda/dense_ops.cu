// The operations of CudaBackend on plain matrices; each forwards to the file of its name.
#include <bit>

#include "kernels/cuda/activate.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/key_value_pages.h"
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/packed_weights.h"
#include "kernels/cuda/sample.h"
#include "kernels/cuda/tensor_memory.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cuda::PackedWeights& Packed(const LinearWeights& weights) {
  return static_cast<const cuda::PackedWeights&>(weights);
}

cuda::PagedRows& Paged(KeyValuePages& pages) { return static_cast<cuda::PagedRows&>(pages); }

DType ActivationsBeside(DType weights) {
  return weights == DType::kBF16 ? DType::kBF16 : DType::kF32;
}

}  // namespace

int64_t CudaBackend::StepRows(int64_t rows) const {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
}

OwnedTensor CudaBackend::NewTensor(int64_t rows, int64_t cols) {
  return cuda::NewMatrix(device_, rows, cols, DType::kF32);
}

OwnedTensor CudaBackend::NewActivations(int64_t rows, int64_t cols, DType weights) {
  return cuda::NewMatrix(device_, rows, cols, ActivationsBeside(weights));
}

OwnedTensor CudaBackend::NewIndices(int64_t rows, int64_t cols) {
  return cuda::NewMatrix(device_, rows, cols, DType::kI32);
}

void CudaBackend::Upload(std::span<const float> values, Tensor dst) {
  cuda::CopyIn(device_, values, dst);
}

void CudaBackend::UploadIndices(std::span<const int32_t> values, Tensor dst) {
  cuda::CopyIn(device_, values, dst);
}

void CudaBackend::Download(Tensor src, std::span<float> values) {
  cuda::CopyOut(device_, src, values);
}

void CudaBackend::DownloadIndices(Tensor src, std::span<int32_t> values) {
  cuda::CopyOut(device_, src, values);
}

std::unique_ptr<LinearWeights> CudaBackend::PackLinear(std::span<const HostMatrix> parts,
                                                       DType dtype) {
  return cuda::PackLinear(device_, parts, dtype);
}

std::unique_ptr<KeyValuePages> CudaBackend::NewKeyValuePages(const AttentionShape& shape,
                                                             int64_t pages, int64_t page_tokens,
                                                             DType weights) {
  return std::make_unique<cuda::PagedRows>(device_, shape, pages, page_tokens,
                                           ActivationsBeside(weights));
}

void CudaBackend::Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                            const AddedRows& positions, Tensor y) {
  cuda::Embedding(device_, Packed(table), ids, types, positions, y);
}

void CudaBackend::LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  cuda::LayerNorm(device_, x, gamma, beta, epsilon, y);
}

void CudaBackend::Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  cuda::Linear(device_, matmul_.get(), {x, Packed(w), epilogue, y});
}

void CudaBackend::Activate(Tensor x, const Epilogue& epilogue, Tensor y) {
  cuda::Activate(device_, x, epilogue, y);
}

void CudaBackend::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                    KeyValuePages& pages, Tensor page_tables, int64_t start,
                                    Tensor o) {
  cuda::AttentionSequence(device_, {shape, qkv, inv_freq, Paged(pages), page_tables, start, o});
}

void CudaBackend::AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                KeyValuePages& pages, Tensor page_tables, Tensor positions,
                                Tensor o) {
  cuda::AttentionStep(device_, {shape, qkv, inv_freq, Paged(pages), page_tables, positions, o});
}

void CudaBackend::Sample(Tensor logits, int64_t vocab, Tensor rows, Tensor tokens) {
  cuda::Sample(device_, logits, vocab, rows, tokens);
}

}  // namespace hippodrome
