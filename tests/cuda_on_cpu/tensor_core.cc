// Instructions of the tensor cores, by the PTX manual's layouts (kernels/cuda/base/mma.cuh).
#include <bit>
#include <cstring>

#include "kernels/dtype.h"
#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/trace.h"

namespace cuda_on_cpu {
namespace {

template <typename Sum>
struct MmaCall : WarpCall {
  Sum* d;
  const uint32_t* a;
  const uint32_t* b;
};

using Row = float __attribute__((vector_size(32)));

inline constexpr int kDepth = 16;

// d += a b, 16 x kDepth times kDepth x 8, where lane 4 g + t holds c0 (g, 2t), c1 (g, 2t + 1),
// c2 (g + 8, 2t), c3 (g + 8, 2t + 1).
UNTRACED void Accumulate(WarpCall* const* calls, const float (&a)[16][kDepth],
                         const Row (&b)[kDepth]) {
  for (int row = 0; row < 16; ++row) {
    Row sums;
    for (int n = 0; n < 8; ++n) {
      sums[n] = static_cast<MmaCall<float>&>(*calls[row % 8 * 4 + n / 2]).d[row / 8 * 2 + n % 2];
    }
    for (int k = 0; k < kDepth; ++k) sums += a[row][k] * b[k];
    for (int n = 0; n < 8; ++n) {
      static_cast<MmaCall<float>&>(*calls[row % 8 * 4 + n / 2]).d[row / 8 * 2 + n % 2] = sums[n];
    }
  }
}

// The lower number of a pair.
UNTRACED float WidenBF16(uint32_t pair) { return __builtin_bit_cast(float, pair << 16); }
UNTRACED float WidenF16(uint32_t pair) {
  return hippodrome::HalfToFloat(static_cast<uint16_t>(pair));
}

template <float (*widen)(uint32_t), WarpInstruction instruction>
UNTRACED void Complete(WarpCall* const* calls, unsigned) {
  TraceInstruction(instruction);
  float a[16][kDepth];
  Row b[kDepth];
  for (int lane = 0; lane < kWarp; ++lane) {
    const auto& call = static_cast<MmaCall<float>&>(*calls[lane]);
    const int g = lane / 4;
    const int t = lane % 4;
    for (int i = 0; i < 4; ++i) {
      a[g + i % 2 * 8][2 * t + i / 2 * 8] = widen(call.a[i]);
      a[g + i % 2 * 8][2 * t + i / 2 * 8 + 1] = widen(call.a[i] >> 16);
    }
    for (int i = 0; i < 2; ++i) {
      b[2 * t + i * 8][g] = widen(call.b[i]);
      b[2 * t + i * 8 + 1][g] = widen(call.b[i] >> 16);
    }
  }
  Accumulate(calls, a, b);
}

// The same of bytes, 16 x 32 times 32 x 8.
UNTRACED void CompleteS8(WarpCall* const* calls, unsigned) {
  TraceInstruction(WarpInstruction::kMmaS8);
  using IntegerRow = int32_t __attribute__((vector_size(32)));
  int32_t a[16][2 * kDepth];
  IntegerRow b[2 * kDepth];
  for (int lane = 0; lane < kWarp; ++lane) {
    const auto& call = static_cast<MmaCall<int32_t>&>(*calls[lane]);
    const int g = lane / 4;
    const int t = lane % 4;
    for (int byte = 0; byte < 4; ++byte) {
      const auto of = [byte](uint32_t word) { return static_cast<int8_t>(word >> 8 * byte); };
      for (int i = 0; i < 4; ++i) a[g + i % 2 * 8][4 * t + byte + i / 2 * 16] = of(call.a[i]);
      for (int i = 0; i < 2; ++i) b[4 * t + byte + i * 16][g] = of(call.b[i]);
    }
  }
  for (int row = 0; row < 16; ++row) {
    IntegerRow sums = {};
    for (int k = 0; k < 2 * kDepth; ++k) sums += a[row][k] * b[k];
    for (int n = 0; n < 8; ++n) {
      static_cast<MmaCall<int32_t>&>(*calls[row % 8 * 4 + n / 2]).d[row / 8 * 2 + n % 2] += sums[n];
    }
  }
}

template <typename Sum>
UNTRACED void Mma(Sum (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                  WarpCall::Complete complete) {
  MmaCall<Sum> call;
  call.mask = ~0u;
  call.complete = complete;
  call.d = d;
  call.a = a;
  call.b = b;
  Block::Running().Meet(call);
}

struct LoadCall : WarpCall {
  uint16_t row[8];  // of matrix lane / 8, row lane % 8
  uint32_t* r;
  bool transposed;
};

UNTRACED void CompleteLoad(WarpCall* const* calls, unsigned) {
  for (int lane = 0; lane < kWarp; ++lane) {
    auto& call = static_cast<LoadCall&>(*calls[lane]);
    const int g = lane / 4;
    const int t = lane % 4;
    for (int m = 0; m < 4; ++m) {
      uint32_t pair[2];
      for (int i = 0; i < 2; ++i) {
        const int row = call.transposed ? 2 * t + i : g;
        const int col = call.transposed ? g : 2 * t + i;
        pair[i] = static_cast<LoadCall&>(*calls[m * 8 + row]).row[col];
      }
      call.r[m] = pair[0] | pair[1] << 16;
    }
  }
}
// Another address, so that lanes that load in different ways do not meet.
UNTRACED void CompleteTransposedLoad(WarpCall* const* calls, unsigned mask) {
  CompleteLoad(calls, mask);
}

}  // namespace

UNTRACED void MmaBF16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Mma(d, a, b, Complete<WidenBF16, WarpInstruction::kMmaBF16>);
}
UNTRACED void MmaF16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Mma(d, a, b, Complete<WidenF16, WarpInstruction::kMmaF16>);
}
UNTRACED void MmaS8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Mma(d, a, b, CompleteS8);
}

// Every lane reads its row itself, as the thread that it is.
UNTRACED void LoadMatrices(uint32_t (&r)[4], const void* row, bool transposed) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    Block::Running().Fail("loads a row of a matrix that is not aligned to 16 bytes");
  }
  LoadCall call;
  call.mask = ~0u;
  call.complete = transposed ? CompleteTransposedLoad : CompleteLoad;
  TraceRead(row, sizeof(call.row));
  TraceAccess(row, sizeof(call.row), false, __builtin_return_address(0));
  __builtin_memcpy(call.row, row, sizeof(call.row));
  call.r = r;
  call.transposed = transposed;
  Block::Running().Meet(call);
}

}  // namespace cuda_on_cpu
