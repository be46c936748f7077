// Memory: blocks for weights and states, the working memory of threads, and tensors.
#ifndef HIPPODROME_KERNELS_CPU_BASE_MEMORY_H_
#define HIPPODROME_KERNELS_CPU_BASE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/tensor.h"

namespace hippodrome {

// `bytes` zeroed bytes, aligned to 64 at least. Blocks from 128 KiB on have pages of their own:
// they become resident as they are touched, and go back to the system when freed. Side by side they
// come with the advice to use huge pages, which lie across their borders. Any thread may call it.
std::shared_ptr<void> AllocateZeroed(size_t bytes);

// Who holds working memory: a function asks under its own name, so that callers keep theirs.
enum class ScratchUse : uint8_t {
  kLinearInput,
  kLinearPanel,
  kLinearSums,
  kLinearGradient,
  kLinearTransposed,
  kLinearColumns,
  kLinearPartialSums,
  kLogits,
  kAttentionRotation,
  kAttentionTile,
  kLinearAttention,
  kNormalisedRow,
  kRowSums,
  kSampleWeights,
  kConvolution,
  kH3Tile,
  kH3Block,
  kSsmTile,
  kUses,  // how many there are: stays last
};
inline constexpr int kScratchUses = static_cast<int>(ScratchUse::kUses);

// At least `bytes` bytes, aligned to 64, with unspecified contents. They belong to the calling
// thread until it asks for the same use again or ends.
void* ThreadScratch(ScratchUse use, size_t bytes);

template <typename T>
T* ThreadScratch(ScratchUse use, int64_t count) {
  return static_cast<T*>(ThreadScratch(use, static_cast<size_t>(count) * sizeof(T)));
}

namespace cpu {

// Cuts memory into parts, in the order in which they are taken.
class Parts {
 public:
  explicit Parts(float* memory) : next_(memory) {}
  float* Take(int64_t floats) {
    float* part = next_;
    next_ += floats;
    return part;
  }

 private:
  float* next_;
};

// Tensors of the CPU backend are f32 activations, inputs of products in what these read
// (kernels/cpu/gemm/product_inputs.h), and i32 indices, in plain memory.

// A zeroed matrix of `dtype` (kF32 or kI32) with adjacent rows.
OwnedTensor NewMatrix(int64_t rows, int64_t cols, DType dtype);

// Row-major `values` to or from a view whose rows may be apart. REQUIRES: sizes and types agree.
void CopyIn(std::span<const float> values, Tensor dst);
void CopyIn(std::span<const int32_t> values, Tensor dst);
void CopyOut(Tensor src, std::span<float> values);
void CopyOut(Tensor src, std::span<int32_t> values);

// Element (row, 0) of a view.
inline float* F32Row(const Tensor& tensor, int64_t row) {
  assert(tensor.dtype == DType::kF32);
  return static_cast<float*>(tensor.data) + row * tensor.stride;
}
inline BF16* BF16Row(const Tensor& tensor, int64_t row) {
  assert(tensor.dtype == DType::kBF16);
  return static_cast<BF16*>(tensor.data) + row * tensor.stride;
}
inline int32_t* I32Row(const Tensor& tensor, int64_t row) {
  assert(tensor.dtype == DType::kI32);
  return static_cast<int32_t*>(tensor.data) + row * tensor.stride;
}

}  // namespace cpu
}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CPU_BASE_MEMORY_H_
