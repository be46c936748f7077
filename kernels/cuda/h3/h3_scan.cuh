// The arithmetic of the blocked scan: a stretch of one channel, scanned by its warp. Products of
// the blocks' tokens and states with the matrices of the channel, and between them a prefix over
// the blocks, mode by mode in f32.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CUH_

#include "kernels/cuda/base/mma.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/h3/h3_state.h"

namespace hippodrome::cuda {

// Numbers of the scan as operands of the tensor cores: sums of 16-bit terms, so that products of
// terms make a product of numbers.
//   bf16 activations   u, states and their matrices are one binary16 (11 bits, as tf32 has), scaled
//                      by powers of two to stay in its range; k is one bf16, exactly, and a tap
//                      two.
//   f32 activations    everything is three bf16 (24 bits), and needs no scaling.

template <typename T>
struct ScanTerms;
template <>
struct ScanTerms<BF16> {
  static constexpr int kStates = 1;  // u, states, and the matrices between them
  static constexpr int kInputs = 1;  // k
  static constexpr int kTaps = 2;
};
template <>
struct ScanTerms<float> {
  static constexpr int kStates = 3;
  static constexpr int kInputs = 3;
  static constexpr int kTaps = 3;
};

__device__ inline void SplitState(float low, float high, uint32_t (&terms)[1]) {
  terms[0] = PackF16(low, high);
}
__device__ inline void SplitState(float low, float high, uint32_t (&terms)[3]) {
  SplitBF16(low, high, terms);
}

// Four adjacent inputs from shared memory, as two pairs.
__device__ inline void LoadInputs(const BF16* from, uint32_t (&pairs)[2][1]) {
  const uint2 words = *reinterpret_cast<const uint2*>(from);
  pairs[0][0] = words.x;
  pairs[1][0] = words.y;
}
__device__ inline void LoadInputs(const float* from, uint32_t (&pairs)[2][3]) {
  const float4 x = *reinterpret_cast<const float4*>(from);
  SplitBF16(x.x, x.y, pairs[0]);
  SplitBF16(x.z, x.w, pairs[1]);
}

__device__ inline void MultiplyStates(float (&d)[4], const uint32_t (&a)[1][4],
                                      const uint32_t (&b)[1][2]) {
  MmaF16(d, a[0], b[0]);
}
__device__ inline void MultiplyStates(float (&d)[4], const uint32_t (&a)[3][4],
                                      const uint32_t (&b)[3][2]) {
  MultiplyTerms(d, a, b);
}

// The power of two that brings x >= 0 into [1, 2), if that is neither huge nor tiny.
__device__ inline float ScaleToOne(float x) {
  const float bounded = fminf(fmaxf(x, 0x1p-100f), 0x1p100f);
  return __uint_as_float(0x7f000000u - (__float_as_uint(bounded) & 0x7f800000u));
}
// 1 / scale of a power of two.
__device__ inline float InverseOf(float scale) {
  return __uint_as_float(0x7f000000u - __float_as_uint(scale));
}
// The scale of numbers up to `largest` in terms of type T's scan.
template <typename T>
__device__ inline float StateScale(float largest) {
  return ScanTerms<T>::kStates == 1 ? ScaleToOne(largest) : 1.0f;
}

inline constexpr int kStretch = 512;  // tokens that a warp scans at once
inline constexpr int kHistory = 64;   // tokens before them that the shift SSM reads
inline constexpr int kMaxModes = kWarp;
inline constexpr int kTapWords = 96;

// What the kernel is given.
template <typename T>
struct ScanArguments {
  H3View layer;
  H3StateView<T> state;
  const T* qkv;
  int64_t qkv_stride;
  T* o;
  int64_t o_stride;
  const SequencePart* parts;
  int32_t part_count;
  bool aligned;  // rows of qkv and o, to 16 bytes
};

// The shared memory of a block: one warp for each of a sector's worth of channels.
template <typename T>
struct ScanShared {
  static constexpr int kChannels = 32 / sizeof(T);
  static constexpr int kThreads = kChannels * kWarp;
  // So that the same column of eight rows is in eight groups of four banks.
  static constexpr int kPad = 16 / sizeof(T);

  alignas(16) T q[kChannels][kStretch + kPad];  // then o
  T k[kChannels][kHistory + kStretch + kPad];
  T v[kChannels][kStretch + kPad];
  // The next stretch as it is in device memory: q | k | v, each [token][half of the channels].
  uint4 next[3][sizeof(T) == 2 ? kStretch : 1][2];
  float4 powers[kChannels][kMaxModes][2];  // dA^16, dA^64 | dA^128, dA^256
  float2 carry[kChannels][kMaxModes];      // the state before the next stretch
  struct alignas(ScanTerms<T>::kTaps == 2 ? 8 : 4) TapPair {
    uint32_t terms[ScanTerms<T>::kTaps];
  } taps[kChannels][kTapWords];  // [TapAt(16 + l)]: taps l and l - 1
  float tail[kChannels][kScanSteps];
  SequencePart part;  // of the stretch
};

// Where the taps hold word i. The words that lanes read together, see ToeplitzOffset(), are in
// different banks.
__device__ constexpr int TapAt(int i) { return i % 4 * (kTapWords / 4) + i / 4; }

// Where the row of a channel holds token i. Tokens 64 apart, which lanes read together, are in
// different banks.
__device__ inline int RowAt(int i) { return i ^ (i >> 2 & 0x30); }

// A stretch of one part.
struct ScanCursor {
  int32_t part;
  int32_t token;
};
// The first one of the parts part, part + gridDim.y, ... that are not inert.
template <typename T>
__device__ inline ScanCursor FirstStretch(const ScanArguments<T>& p, int32_t part) {
  while (part < p.part_count && p.parts[part].slot < 0) part += static_cast<int32_t>(gridDim.y);
  return {part, 0};
}
template <typename T>
__device__ inline ScanCursor NextStretch(const ScanArguments<T>& p, ScanCursor at) {
  if (at.token + kStretch < p.parts[at.part].tokens) return {at.part, at.token + kStretch};
  return FirstStretch(p, at.part + static_cast<int32_t>(gridDim.y));
}
template <typename T>
__device__ inline int TokensOf(const ScanArguments<T>& p, ScanCursor at) {
  return min(p.parts[at.part].tokens - at.token, kStretch);
}
// The row of the first token.
template <typename T>
__device__ inline int64_t RowOf(const ScanArguments<T>& p, ScanCursor at) {
  return int64_t{p.parts[at.part].first_row} + at.token;
}

// The matrices of one channel of the scan, made by its warp when a block starts. Lane 4 g + t; a
// block of the scan has 16 tokens q, and MMAs number their rows, columns and sums (of 16) so that a
// lane deals with tokens q = 4t .. 4t + 3 of blocks 4g .. 4g + 3 throughout:
//   sum index of tokens    slots 2t, 2t + 1, 2t + 8, 2t + 9 are q = 4t, 4t + 1, 4t + 2, 4t + 3
//   columns of tokens      column 2t + e of tile j is q = 4t + 2j + e
//   columns of states      column 2t + e of tile i is part e (re, im) of mode 4i + t
//   sum index of states    slots 2t + e, 2t + 8 + e of step s are the columns of tiles 2s, 2s + 1
//   rows of blocks         rows g, g + 8 of tile m are blocks 4g + 2m, 4g + 2m + 1

inline constexpr int kStateTiles = 2 * kMaxModes / 8;

// Right operands, [...][term][slots].
template <typename T>
struct ScanOperands {
  static constexpr int kTerms = ScanTerms<T>::kStates;

  uint32_t in[kStateTiles][kTerms][2];          // u to states after the block: dA^(15 - q)
  uint32_t out[kStateTiles / 2][2][kTerms][2];  // states before the block to y: w dA^(q + 1)
  uint32_t direct[3][kTerms];                   // u to y: the kernel, see ToeplitzOffset()
  float scale;                                  // that `out` and `direct` are multiplied by
};

// A banded Toeplitz matrix from tokens q' to tokens q has 2 * 2 words (column tile j, slot h) that
// depend on j - h alone: the elements of q - q' = 2 (j - h) + ToeplitzOffset() and one less.
__device__ inline int ToeplitzOffset() {
  const int lane = threadIdx.x % kWarp;
  return lane / 8 * 4 + lane / 4 % 2 - lane % 4 * 4;
}

// One mode over the 32 blocks of a stretch, of which lane 4 g + t has blocks 4g .. 4g + 3 of the
// mode of t: states from the inputs of the blocks, in f32.

// Of one mode, over one block and over the blocks of one, two and four lanes.
struct ModePowers {
  float2 block;     // dA^16
  float2 lanes[3];  // dA^64, dA^128, dA^256
};

struct BlockStates {
  float2 before[4];  // each of the lane's blocks
  float2 after;      // all of them
};

__device__ inline float2 ShuffleUp(float2 x, int lanes) {
  return make_float2(__shfl_up_sync(kAllLanes, x.x, lanes), __shfl_up_sync(kAllLanes, x.y, lanes));
}

// x: what each of the lane's blocks adds; start: the state before the stretch.
__device__ inline BlockStates ScanBlocks(const float2 (&x)[4], float2 start,
                                         const ModePowers& powers) {
  const int g = threadIdx.x % kWarp / 4;
  BlockStates s;
  // From zero before the lane's blocks; then from four, eight and sixteen blocks earlier.
  s.after = x[0];
#pragma unroll
  for (int rho = 1; rho < 4; ++rho) s.after = ComplexMultiplyAdd(powers.block, s.after, x[rho]);
  if (g == 0) s.after = ComplexMultiplyAdd(powers.lanes[0], start, s.after);
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const float2 earlier = ShuffleUp(s.after, 4 << i);
    if (g >= 1 << i) s.after = ComplexMultiplyAdd(powers.lanes[i], earlier, s.after);
  }
  s.before[0] = ShuffleUp(s.after, 4);
  if (g == 0) s.before[0] = start;
#pragma unroll
  for (int rho = 1; rho < 4; ++rho) {
    s.before[rho] = ComplexMultiplyAdd(powers.block, s.before[rho - 1], x[rho - 1]);
  }
  return s;
}

// A number of each of the lane's 16 tokens, as results of MMAs: [m][j][2h + e] is token
// q = 4t + 2j + e of block 4g + 2m + h.
using ScanTile = float[2][2][4];

template <typename T>
class ChannelScan {
 public:
  static constexpr int kTerms = ScanTerms<T>::kStates;

  // `row`: of shared memory.
  __device__ ChannelScan(ScanShared<T>& shared, int row, const ScanOperands<T>& operands)
      : shared_(shared),
        row_(row),
        operands_(operands),
        lane_(threadIdx.x % kWarp),
        g_(lane_ / 4),
        t_(lane_ % 4) {}

  // Replaces q by o, and the state before the stretch by that after `tokens` tokens, of which the
  // last tokens % 16 are left to Finish().
  __device__ void Run(int tokens) {
    ScanTile tile = {};
    ShiftSsm(tile);
    MultiplyByV(tile);
    if (tokens % kStep != 0) KeepTail(tile, tokens / kStep);
    const float scale = StateScale<T>(Largest(tile));
    uint32_t u[2][kTerms][4];
    SplitTile(tile, scale, u);
    Outputs(u, scale, tokens / kStep, tile);
    StoreOutputs(tile, InverseOf(scale) * InverseOf(operands_.scale));
    __syncwarp();
  }

  // The last `steps` tokens of a sequence, by the recurrence; a: dA of lane = mode.
  __device__ void Finish(int steps, float2 a) {
    float2 s = shared_.carry[row_][lane_];
    for (int i = 0; i < steps; ++i) {
      s = ComplexMultiplyAdd(a, s, make_float2(shared_.tail[row_][i], 0));
    }
    shared_.carry[row_][lane_] = s;
  }

 private:
  static constexpr int kStep = static_cast<int>(kScanSteps);

  // Where the lane's tokens of its block `rho` start in a row.
  __device__ int Token(int rho) const { return 64 * g_ + kStep * rho + 4 * t_; }

  // ks of block b = sum over p of the inputs of block b - p times a Toeplitz matrix.
  __device__ void ShiftSsm(ScanTile& ks) const {
    constexpr int kBlocks = kHistory / kStep;
    uint32_t k[kBlocks + 4][2][ScanTerms<T>::kInputs];
#pragma unroll
    for (int b = 0; b < kBlocks + 4; ++b) LoadInputs(shared_.k[row_] + RowAt(Token(b)), k[b]);
    const int offset = kStep + ToeplitzOffset();
#pragma unroll
    for (int p = 0; p <= kBlocks; ++p) {
      typename ScanShared<T>::TapPair words[3];
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        words[i] = shared_.taps[row_][TapAt(offset + 2 * (i - 1)) + kStep / 4 * p];
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        uint32_t a[ScanTerms<T>::kInputs][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int term = 0; term < ScanTerms<T>::kInputs; ++term) {
            a[term][i] = k[kBlocks + 2 * m + i % 2 - p][i / 2][term];
          }
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          uint32_t b[ScanTerms<T>::kTaps][2];
#pragma unroll
          for (int term = 0; term < ScanTerms<T>::kTaps; ++term) {
            b[term][0] = words[j + 1].terms[term];
            b[term][1] = words[j].terms[term];
          }
          MultiplyTerms(ks[m][j], a, b);
        }
      }
    }
  }

  __device__ void MultiplyByV(ScanTile& ks) const {
#pragma unroll
    for (int rho = 0; rho < 4; ++rho) {
      const RowVector<T, 4> v = LoadVector<T, 4>(shared_.v[row_] + RowAt(Token(rho)));
#pragma unroll
      for (int i = 0; i < 4; ++i) ks[rho / 2][i / 2][rho % 2 * 2 + i % 2] *= Widen(v.values[i]);
    }
  }

  __device__ void KeepTail(const ScanTile& u, int block) const {
#pragma unroll
    for (int rho = 0; rho < 4; ++rho) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (4 * g_ + rho == block) {
          shared_.tail[row_][4 * t_ + i] = u[rho / 2][i / 2][rho % 2 * 2 + i % 2];
        }
      }
    }
  }

  // Of the inputs and the state.
  __device__ float Largest(const ScanTile& u) const {
    const float2 s = shared_.carry[row_][lane_];
    float largest = fmaxf(fabsf(s.x), fabsf(s.y));
#pragma unroll
    for (int i = 0; i < 16; ++i) largest = fmaxf(largest, fabsf(u[i / 8][i / 4 % 2][i % 4]));
    return WarpMax(largest);
  }

  // As left operands.
  __device__ static void SplitTile(const ScanTile& tile, float scale,
                                   uint32_t (&operand)[2][kTerms][4]) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&x)[4] = tile[m][i / 2];
        Place(x[i % 2 * 2] * scale, x[i % 2 * 2 + 1] * scale, i, operand[m]);
      }
    }
  }
  __device__ static void Place(float low, float high, int slot, uint32_t (&operand)[kTerms][4]) {
    uint32_t terms[kTerms];
    SplitState(low, high, terms);
#pragma unroll
    for (int term = 0; term < kTerms; ++term) operand[term][slot] = terms[term];
  }

  // y: what u gives directly, and what the states before the blocks give.
  __device__ void Outputs(const uint32_t (&u)[2][kTerms][4], float scale, int blocks,
                          ScanTile& y) const {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        uint32_t b[kTerms][2];
#pragma unroll
        for (int term = 0; term < kTerms; ++term) {
          b[term][0] = operands_.direct[j + 1][term];
          b[term][1] = operands_.direct[j][term];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) y[m][j][i] = 0;
        MultiplyStates(y[m][j], u[m], b);
      }
    }
#pragma unroll
    for (int step = 0; step < kStateTiles / 2; ++step) {
      uint32_t states[2][kTerms][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const BlockStates s = States(u, 2 * step + i, scale, blocks);
#pragma unroll
        for (int rho = 0; rho < 4; ++rho) {
          Place(s.before[rho].x, s.before[rho].y, 2 * i + rho % 2, states[rho / 2]);
        }
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int j = 0; j < 2; ++j) MultiplyStates(y[m][j], states[m], operands_.out[step][j]);
      }
    }
  }

  // The states of mode 4 tile + t before the lane's blocks, times `scale`. The one after `blocks`
  // blocks becomes the carry.
  __device__ BlockStates States(const uint32_t (&u)[2][kTerms][4], int tile, float scale,
                                int blocks) const {
    float x[2][4] = {};
#pragma unroll
    for (int m = 0; m < 2; ++m) MultiplyStates(x[m], u[m], operands_.in[tile]);
    const float2 inputs[4] = {make_float2(x[0][0], x[0][1]), make_float2(x[0][2], x[0][3]),
                              make_float2(x[1][0], x[1][1]), make_float2(x[1][2], x[1][3])};
    const int mode = 4 * tile + t_;
    const float4 low = shared_.powers[row_][mode][0];
    const float4 high = shared_.powers[row_][mode][1];
    const ModePowers powers = {
        make_float2(low.x, low.y),
        {make_float2(low.z, low.w), make_float2(high.x, high.y), make_float2(high.z, high.w)}};
    float2& carry = shared_.carry[row_][mode];
    const float2 start = make_float2(carry.x * scale, carry.y * scale);
    __syncwarp();
    const BlockStates s = ScanBlocks(inputs, start, powers);
    const float inverse = InverseOf(scale);
    const auto keep = [&](float2 end) { carry = make_float2(end.x * inverse, end.y * inverse); };
    if (blocks == kStretch / kStep) {
      if (g_ == 7) keep(s.after);
    } else {
#pragma unroll
      for (int rho = 0; rho < 4; ++rho) {
        if (4 * g_ + rho == blocks) keep(s.before[rho]);
      }
    }
    return s;
  }

  __device__ void StoreOutputs(const ScanTile& y, float scale) const {
#pragma unroll
    for (int rho = 0; rho < 4; ++rho) {
      T* at = shared_.q[row_] + RowAt(Token(rho));
      RowVector<T, 4> q = LoadVector<T, 4>(at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        q.values[i] =
            FromFloat<T>(y[rho / 2][i / 2][rho % 2 * 2 + i % 2] * scale * Widen(q.values[i]));
      }
      StoreVector(q, at);
    }
  }

  ScanShared<T>& shared_;
  const int row_;
  const ScanOperands<T>& operands_;
  const int lane_;
  const int g_;
  const int t_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CUH_
