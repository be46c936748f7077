// A stretch of one channel, scanned by its warp: products of the blocks' tokens and states with the
// matrices of the channel (h3_scan_channel.cuh), and between them a prefix over the blocks, mode by
// mode in f32.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_STRETCH_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_STRETCH_CUH_

#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/h3/h3_scan_channel.cuh"
#include "kernels/cuda/h3/h3_scan_prefix.cuh"

namespace hippodrome::cuda {

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
      for (int i = 0; i < 3; ++i) words[i] = shared_.taps[row_][offset + kStep * p + 2 * (i - 1)];
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

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_STRETCH_CUH_
