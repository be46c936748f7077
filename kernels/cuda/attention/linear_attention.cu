// A block computes a head of a sequence. Parts are launched one by one.
#include "kernels/cuda/attention/linear_attention.h"

#include <cassert>

#include "kernels/cuda/attention/outer_scan.cuh"
#include "kernels/cuda/base/elementwise.h"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

// `tokens` rows of each of some sequences.
template <typename T>
struct LinearAttentionArguments {
  const T* qkv;  // rows of qkv_stride
  int64_t qkv_stride;
  T* o;  // rows of o_stride
  int64_t o_stride;
  float* states;  // of slots that are slot_floats apart: S [heads, n, n], z [heads, n]
  int64_t slot_floats;
  const int32_t* slots;  // of each sequence, -1: zeros; null: from `slot` on
  int32_t slot;
  int32_t heads;
  int32_t head_dim;
  int64_t tokens;
};

// One head of one sequence, by a block.
template <typename T, int kTokens>
class LinearAttentionHead {
 public:
  __device__ LinearAttentionHead(const LinearAttentionArguments<T>& a, int32_t slot)
      : a_(a),
        n_(a.head_dim),
        first_row_(blockIdx.y * a.tokens),
        first_column_(static_cast<int>(blockIdx.x) * n_) {
    float* state = a.states + slot * a.slot_floats;
    kv_ = state + int64_t{blockIdx.x} * n_ * n_;
    z_ = state + (int64_t{a.heads} * n_ + blockIdx.x) * n_;
  }

  __device__ void Clear() {
    for (int64_t t = 0; t < a_.tokens; ++t) {
      for (int c = static_cast<int>(threadIdx.x); c < n_; c += kOuterThreads) {
        *Output(t, c) = FromFloat<T>(0.0f);
      }
    }
  }

  __device__ void Run() {
    __shared__ OuterTile<kTokens> tile;
    __shared__ float partial[kOuterWarps][kTokens];
    for (int64_t t = 0; t < a_.tokens; t += kTokens) {
      const int steps = static_cast<int>(min(int64_t{kTokens}, a_.tokens - t));
      float denominator[kTokens];
      Normalize(t, steps, denominator, partial);
      // All threads stay together.
      for (int first = 0; first < n_; first += kOuterThreads) {
        Columns(t, steps, first + static_cast<int>(threadIdx.x), denominator, tile);
      }
    }
  }

 private:
  // denominator_i = phi(q_i) z_i + epsilon.
  __device__ void Normalize(int64_t t, int steps, float (&denominator)[kTokens],
                            float (&partial)[kOuterWarps][kTokens]) {
#pragma unroll
    for (int i = 0; i < kTokens; ++i) denominator[i] = 0.0f;
    for (int r = static_cast<int>(threadIdx.x); r < n_; r += kOuterThreads) {
      float z = z_[r];
#pragma unroll
      for (int i = 0; i < kTokens; ++i) {
        if (i >= steps) break;
        z += Feature(t + i, 1, r);
        denominator[i] = fmaf(Feature(t + i, 0, r), z, denominator[i]);
      }
      z_[r] = z;
    }
    SumOverBlock(denominator, partial);
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      denominator[i] += static_cast<float>(kLinearAttentionEpsilon);
    }
  }

  // Tokens that there are not have zeros.
  __device__ void Columns(int64_t t, int steps, int column, const float (&denominator)[kTokens],
                          OuterTile<kTokens>& tile) {
    const bool valid = column < n_;
    float v[kTokens];
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      v[i] = valid && i < steps ? Widen(*Input(t + i, 2, column)) : 0.0f;
    }
    float out[kTokens];
    ScanOuter(
        tile, n_, [&](int i, int row) { return i < steps ? Feature(t + i, 1, row) : 0.0f; },
        [&](int i, int row) { return i < steps ? Feature(t + i, 0, row) : 0.0f; }, v,
        valid ? kv_ + column : nullptr, n_, out);
    if (!valid) return;
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      if (i < steps) *Output(t + i, column) = FromFloat<T>(out[i] / denominator[i]);
    }
  }

  // Of q, k and v, in this order.
  __device__ const T* Input(int64_t t, int part, int column) const {
    return a_.qkv + (first_row_ + t) * a_.qkv_stride + part * a_.heads * n_ + first_column_ +
           column;
  }
  __device__ float Feature(int64_t t, int part, int column) const {
    return LinearAttentionFeature(Widen(*Input(t, part, column)));
  }
  __device__ T* Output(int64_t t, int column) const {
    return a_.o + (first_row_ + t) * a_.o_stride + first_column_ + column;
  }

  const LinearAttentionArguments<T>& a_;
  const int n_;
  const int64_t first_row_;
  const int first_column_;
  float* kv_;
  float* z_;
};

// Grid: (heads, sequences).
template <typename T, int kTokens>
__global__ void __launch_bounds__(kOuterThreads)
    LinearAttentionKernel(const LinearAttentionArguments<T> a) {
  BeginDependent();
  const int32_t slot =
      a.slots == nullptr ? a.slot + static_cast<int32_t>(blockIdx.y) : a.slots[blockIdx.y];
  if (slot < 0) {
    LinearAttentionHead<T, kTokens>(a, 0).Clear();
  } else {
    LinearAttentionHead<T, kTokens>(a, slot).Run();
  }
}

// Where the sequences of a launch are, and how many there are.
struct LinearAttentionStates {
  float* values;
  int64_t slot_floats;
  const int32_t* slots;
  int32_t slot;
  int64_t sequences;
};

template <typename T>
void Run(Device& device, const char* operation, const LinearAttentionShape& shape,
         const Tensor& qkv, const LinearAttentionStates& states, const Tensor& o) {
  const LinearAttentionArguments<T> arguments = {.qkv = DeviceRow<T>(qkv, 0),
                                                 .qkv_stride = qkv.stride,
                                                 .o = DeviceRow<T>(o, 0),
                                                 .o_stride = o.stride,
                                                 .states = states.values,
                                                 .slot_floats = states.slot_floats,
                                                 .slots = states.slots,
                                                 .slot = states.slot,
                                                 .heads = static_cast<int32_t>(shape.heads),
                                                 .head_dim = static_cast<int32_t>(shape.head_dim),
                                                 .tokens = qkv.rows / states.sequences};
  const auto kernel =
      arguments.tokens == 1 ? LinearAttentionKernel<T, 1> : LinearAttentionKernel<T, kOuterTokens>;
  Launch(
      device, operation, kernel,
      {.blocks = dim3(static_cast<unsigned>(shape.heads), static_cast<unsigned>(states.sequences)),
       .threads = dim3(kOuterThreads),
       .dependent = true},
      arguments);
}

void RunAny(Device& device, const char* operation, const LinearAttentionShape& shape,
            const Tensor& qkv, const LinearAttentionStates& states, const Tensor& o) {
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * o.cols == qkv.cols);
  assert(o.rows == qkv.rows && o.dtype == qkv.dtype);
  if (qkv.rows == 0) return;
  const auto run = qkv.dtype == DType::kBF16 ? Run<BF16> : Run<float>;
  run(device, operation, shape, qkv, states, o);
}

}  // namespace

void LinearAttentionSequence(Device& device, const LinearAttentionShape& shape, Tensor qkv,
                             RecurrentSlots& state, const SequenceParts& parts, Tensor o) {
  auto capture = parts.captures.begin();
  for (size_t i = 0; i < parts.parts.size(); ++i) {
    const SequencePart& part = parts.parts[i];
    int64_t done = 0;
    const auto run_to = [&](int64_t end) {
      if (end == done) return;
      const int64_t row = part.first_row + done;
      RunAny(device, "linear_attention_sequence", shape, qkv.Rows(row, end - done),
             {state.Slot(0), state.floats(), nullptr, part.slot, 1}, o.Rows(row, end - done));
      done = end;
    };
    for (; capture != parts.captures.end() && capture->part == static_cast<int32_t>(i); ++capture) {
      if (part.slot < 0) continue;
      run_to(capture->tokens);
      state.Copy(device, part.slot, capture->to);
    }
    if (part.slot >= 0) run_to(part.tokens);
  }
}

void LinearAttentionStep(Device& device, const LinearAttentionShape& shape, Tensor qkv,
                         RecurrentSlots& state, Tensor slots, Tensor o) {
  assert(slots.cols == qkv.rows);
  RunAny(device, "linear_attention_step", shape, qkv,
         {state.Slot(0), state.floats(), DeviceRow<int32_t>(slots, 0), -1, qkv.rows}, o);
}

void CausalLinearAttention(Device& device, const LinearAttentionShape& shape, Tensor qkv,
                           int64_t sequences, Tensor o) {
  assert(sequences > 0 && qkv.rows % sequences == 0);
  const int64_t floats = shape.heads * shape.head_dim * (shape.head_dim + 1);
  auto* states = static_cast<float*>(device.Scratch(
      ScratchUse::kLinearAttention, static_cast<size_t>(sequences * floats) * sizeof(float)));
  Fill(device, 0, {states, DType::kF32, 1, sequences * floats, sequences * floats});
  RunAny(device, "linear_attention", shape, qkv, {states, floats, nullptr, 0, sequences}, o);
}

}  // namespace hippodrome::cuda
