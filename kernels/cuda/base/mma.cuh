// Instructions of the tensor cores and of asynchronous copies, as functions with two bodies:
// assembly for devices (sm_80 and later), and their meaning for the emulator. Every lane of a warp
// must call them together. Fragment layouts are those of the PTX manual, lane = 4 g + t:
//   m16n8k16 bf16,  A: a0 (g, 2t..2t+1), a1 (g + 8, 2t..), a2 (g, 2t + 8..), a3 (g + 8, 2t + 8..)
//   f16             B: b0 (k 2t..2t+1, n g), b1 (k 2t + 8.., n g); the lower half is the lower k
//   m16n8k32 s8,    A: a0 (g, 4t..4t+3), a1 (g + 8, 4t..), a2 (g, 4t + 16..), a3 (g + 8, 4t + 16..)
//                   B: b0 (k 4t..4t+3, n g), b1 (k 4t + 16.., n g); the lowest byte is the lowest k
//   all             C, D: c0 (g, 2t), c1 (g, 2t + 1), c2 (g + 8, 2t), c3 (g + 8, 2t + 1)
#ifndef HIPPODROME_KERNELS_CUDA_BASE_MMA_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_MMA_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

// Two numbers as bf16, `low` in the lower half.
__device__ inline uint32_t PackBF16(float low, float high) {
#ifdef __CUDACC__
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#else
  return uint32_t{RoundToBF16(low).bits} | uint32_t{RoundToBF16(high).bits} << 16;
#endif
}

// Two numbers as binary16, to nearest even, `low` in the lower half; infinite beyond 65504.
__device__ inline uint32_t PackF16(float low, float high) {
#ifdef __CUDACC__
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const auto half = [](float x) -> uint32_t {
    const uint32_t sign = __float_as_uint(x) >> 16 & 0x8000u;
    const float size = fabsf(x);
    if (!(size < 65520.0f)) return sign | (size != size ? 0x7e00u : 0x7c00u);
    if (size < 0x1p-14f) return sign | static_cast<uint32_t>(rintf(size * 0x1p24f));
    const uint32_t bits = __float_as_uint(size);
    return sign | (((bits + 0xfffu + (bits >> 13 & 1u)) >> 13) - (112u << 10));
  };
  return half(low) | half(high) << 16;
#endif
}

// d += a b, bf16 operands, f32 sums.
__device__ inline void MmaBF16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  cuda_on_cpu::MmaBF16(d, a, b);
#endif
}

// d += a b, binary16 operands, f32 sums; laid out as bf16 ones.
__device__ inline void MmaF16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  cuda_on_cpu::MmaF16(d, a, b);
#endif
}

// d += a b, operands of signed bytes, exact sums.
__device__ inline void MmaS8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  cuda_on_cpu::MmaS8(d, a, b);
#endif
}

// ldmatrix.x4: four 8 x 8 matrices of 2-byte elements from shared memory. `row` is the address of
// row lane % 8 of matrix lane / 8 (16 bytes, aligned); r[i] gets elements (g, 2t..2t+1) of matrix
// i.
__device__ inline void LoadMatrices(uint32_t (&r)[4], const void* row) {
#ifdef __CUDACC__
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
#else
  cuda_on_cpu::LoadMatrices(r, row, false);
#endif
}
// The same with each matrix transposed: r[i] gets elements (2t, g) and (2t + 1, g).
__device__ inline void LoadMatricesTransposed(uint32_t (&r)[4], const void* row) {
#ifdef __CUDACC__
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
#else
  cuda_on_cpu::LoadMatrices(r, row, true);
#endif
}

// Starts to copy 16 bytes from device to shared memory, both aligned to 16; zeros if !valid, and
// then `from` is not read.
__device__ inline void CopyAsync16(void* shared, const void* from, bool valid = true) {
#ifdef __CUDACC__
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  cuda_on_cpu::CopyAsync16(shared, from, valid);
#endif
}
// Closes the group of the copies started since the last one.
__device__ inline void CommitCopies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  cuda_on_cpu::CommitCopies();
#endif
}
// Waits until at most kPending of this thread's groups are under way. Other threads see what was
// copied after a barrier.
template <int kPending>
__device__ inline void WaitForCopies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#else
  cuda_on_cpu::WaitForCopies(kPending);
#endif
}

// Row g of two neighbouring c fragments as bf16, on its way to memory: a lane has the pairs of
// their columns 2t, 2t + 1 and gets the four columns from RowPart() on of the sixteen, so that the
// lanes of a row fill a sector.
__device__ inline uint2 GatherRowPart(uint32_t left, uint32_t right) {
  const bool odd = threadIdx.x % 2 == 1;
  const uint32_t other = __shfl_xor_sync(kAllLanes, odd ? left : right, 1);
  return odd ? make_uint2(other, right) : make_uint2(left, other);
}
__device__ inline int RowPart(int lane) { return lane % 2 * 8 + lane % 4 / 2 * 4; }

// Numbers as sums of bf16 terms, so that products of terms on the tensor cores make a product of
// numbers: two terms have 16 bits, three have 24.

// (low, high) as pairs of terms, the largest first.
template <int kTerms>
__device__ inline void SplitBF16(float low, float high, uint32_t (&terms)[kTerms]) {
#pragma unroll
  for (int i = 0; i < kTerms; ++i) {
    terms[i] = PackBF16(low, high);
    low -= __uint_as_float(terms[i] << 16);
    high -= __uint_as_float(terms[i] & 0xffff0000u);
  }
}

// d += a b, without the products of terms that are below the last one.
template <int kA, int kB>
__device__ inline void MultiplyTerms(float (&d)[4], const uint32_t (&a)[kA][4],
                                     const uint32_t (&b)[kB][2]) {
  constexpr int kTerms = kA > kB ? kA : kB;
#pragma unroll
  for (int i = 0; i < kA; ++i) {
#pragma unroll
    for (int j = 0; j < kB && i + j < kTerms; ++j) MmaBF16(d, a[i], b[j]);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_MMA_CUH_
