// Rows that nothing reads but products, as their kernels take them: whoever writes such a row
// rounds it while it is in the cache, and the product has no pass over its inputs.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_PRODUCT_INPUTS_H_
#define HIPPODROME_KERNELS_CPU_GEMM_PRODUCT_INPUTS_H_

#include <cassert>
#include <cstdint>
#include <span>

#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/dtype.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// A group of a row beside kI8 weights.
using Int8Group = RoundedGroup<int8_t, Int8Panel>;

// The contract of Backend::NewProductInputs: a tensor of
//   kBF16 beside kBF16 weights, where the processor multiplies such numbers: rows of InputStride();
//   kI8 beside kI8 weights, where it multiplies bytes: rows of QuantizedGroups() Int8Group, its
//     stride in bytes, columns that cannot be taken apart;
//   kF32 otherwise, of which a product makes rows of its own first.
// Rows that are more than these, which kernels may read and nobody writes, lie behind the last one.
OwnedTensor NewProductInputs(int64_t rows, int64_t cols, DType weights);

// Elements from a row of bf16 to the next: whole steps of matrix tiles, and an odd number of cache
// lines, since of rows 4 KiB apart the first-level cache holds only eight or twelve.
int64_t InputStride(int64_t in);

// Rounds n floats to bf16, with zeros up to a whole step of matrix tiles. REQUIRES: HaveBF16Dot().
void RoundToSteps(const float* x, int64_t n, BF16* rounded);

// Group `group` of row `row` of a kI8 one.
inline Int8Group* GroupAt(const Tensor& inputs, int64_t row, int64_t group) {
  assert(inputs.dtype == DType::kI8);
  char* const bytes = static_cast<char*>(inputs.data) + row * inputs.stride;
  return reinterpret_cast<Int8Group*>(bytes) + group;
}

// Writes row `row` from inputs.cols floats. REQUIRES: not kF32.
void StoreInputs(const float* x, const Tensor& inputs, int64_t row);

// CopyIn() and CopyOut() (kernels/cpu/base/memory.h) for kI8 ones: the values that the groups stand
// for.
void CopyGroupsIn(std::span<const float> values, const Tensor& dst);
void CopyGroupsOut(const Tensor& src, std::span<float> values);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_PRODUCT_INPUTS_H_
