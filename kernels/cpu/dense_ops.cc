// The operations of CpuBackend on plain matrices; each forwards to the file of its name.
#include <cassert>

#include "kernels/cpu/activate.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/key_value_pages.h"
#include "kernels/cpu/layer_norm.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/packed_weights.h"
#include "kernels/cpu/sample.h"
#include "kernels/cpu/tensor_memory.h"

namespace hippodrome {
namespace {

// Handles were made by this backend, hence the casts.
const cpu::PackedWeights& Packed(const LinearWeights& weights) {
  return static_cast<const cpu::PackedWeights&>(weights);
}

cpu::PagedRows& Paged(KeyValuePages& pages) { return static_cast<cpu::PagedRows&>(pages); }

}  // namespace

OwnedTensor CpuBackend::NewTensor(int64_t rows, int64_t cols) {
  return cpu::NewMatrix(rows, cols, DType::kF32);
}

OwnedTensor CpuBackend::NewActivations(int64_t rows, int64_t cols, DType /*weights*/) {
  return NewTensor(rows, cols);
}

OwnedTensor CpuBackend::NewIndices(int64_t rows, int64_t cols) {
  return cpu::NewMatrix(rows, cols, DType::kI32);
}

void CpuBackend::Upload(std::span<const float> values, Tensor dst) { cpu::CopyIn(values, dst); }

void CpuBackend::UploadIndices(std::span<const int32_t> values, Tensor dst) {
  cpu::CopyIn(values, dst);
}

void CpuBackend::Download(Tensor src, std::span<float> values) { cpu::CopyOut(src, values); }

void CpuBackend::DownloadIndices(Tensor src, std::span<int32_t> values) {
  cpu::CopyOut(src, values);
}

std::unique_ptr<LinearWeights> CpuBackend::PackLinear(std::span<const HostMatrix> parts,
                                                      DType dtype) {
  return cpu::PackLinear(pool_, parts, dtype);
}

std::unique_ptr<KeyValuePages> CpuBackend::NewKeyValuePages(const AttentionShape& shape,
                                                            int64_t pages, int64_t page_tokens,
                                                            DType /*weights*/) {
  return std::make_unique<cpu::PagedRows>(shape, pages, page_tokens);
}

void CpuBackend::Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                           const AddedRows& positions, Tensor y) {
  cpu::Embedding(pool_, Packed(table), ids, types, positions, y);
}

void CpuBackend::LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  cpu::LayerNorm(pool_, x, gamma, beta, epsilon, y);
}

void CpuBackend::Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  cpu::Linear(pool_, x, Packed(w), epilogue, y);
}

void CpuBackend::Activate(Tensor x, const Epilogue& epilogue, Tensor y) {
  cpu::Activate(pool_, x, epilogue, y);
}

void CpuBackend::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                   KeyValuePages& pages, Tensor page_tables, int64_t start,
                                   Tensor o) {
  const int64_t tokens = qkv.rows / page_tables.rows;
  for (int64_t b = 0; b < page_tables.rows; ++b) {
    if (cpu::I32Row(page_tables, b)[0] < 0) continue;
    cpu::AttentionSequence(pool_, shape, qkv.Rows(b * tokens, tokens), inv_freq, Paged(pages),
                           page_tables.Rows(b, 1), start, o.Rows(b * tokens, tokens));
  }
}

void CpuBackend::AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                               KeyValuePages& pages, Tensor page_tables, Tensor positions,
                               Tensor o) {
  cpu::AttentionStep(pool_, shape, qkv, inv_freq, Paged(pages), page_tables, positions, o);
}

void CpuBackend::Sample(Tensor logits, int64_t vocab, Tensor rows, Tensor tokens) {
  assert(rows.rows == logits.rows && rows.cols == kSamplingColumns && rows.stride == rows.cols);
  const auto* first = reinterpret_cast<const SamplingRow*>(cpu::I32Row(rows, 0));
  cpu::Sample(pool_, logits, vocab, {first, static_cast<size_t>(rows.rows)}, tokens);
}

}  // namespace hippodrome
