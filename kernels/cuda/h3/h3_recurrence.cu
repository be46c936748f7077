// H3 as its recurrence, for any layer.
//
// A block takes some whole heads of one sequence. Tokens are taken kSteps at a time: ks, v and q of
// the block's channels are laid in shared memory; then a warp computes an output channel d2, its
// lanes holding modes, for one d1 after the other. So the modes stay in registers for kSteps
// tokens, and lanes are summed once per output.
#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/sequence_parts.h"
#include "kernels/cuda/h3/h3_operands.cuh"
#include "kernels/cuda/h3/h3_prefill.h"
#include "kernels/cuda/h3/h3_step.h"

namespace hippodrome::cuda {
namespace {

constexpr int kRecurrenceThreads = 256;
constexpr int kRecurrenceWarps = kRecurrenceThreads / kWarp;

template <typename T>
struct RecurrenceArguments {
  H3Operands<T> x;
  const SequencePart* parts;  // unread in a step: one token of each row, as x says
  int32_t columns;            // channels of a block, a multiple of head_dim

  template <int kSteps>
  __device__ SequencePart Part(int32_t i) const {
    if constexpr (kSteps > 1) {
      return parts[i];
    } else {
      return {.slot = x.slots[i], .first_row = i, .tokens = 1, .start = x.positions[i]};
    }
  }
};

// Shared memory of a block.
inline size_t RecurrenceBytes(int64_t columns, int64_t steps) {
  return static_cast<size_t>(3 * steps * columns) * sizeof(float);
}

template <typename T, int kSteps>
class RecurrenceBlock {
 public:
  __device__ RecurrenceBlock(const RecurrenceArguments<T>& arguments, const SequencePart& part)
      : x_(arguments.x),
        h3_(arguments.x.constants),
        slot_(part.slot),
        first_row_(part.first_row),
        tokens_(part.tokens),
        start_(part.start),
        first_(static_cast<int32_t>(blockIdx.x) * arguments.columns),
        columns_(min(arguments.columns, h3_.d_model - first_)) {
    ks_ = reinterpret_cast<float*>(SharedMemory());
    v_ = ks_ + kSteps * columns_;
    q_ = v_ + kSteps * columns_;
  }

  __device__ void Run() {
    for (int32_t t = 0; t < tokens_; t += kSteps) {
      const int steps = min(kSteps, tokens_ - t);
      Load(t, steps);
      __syncthreads();
      const int warp = static_cast<int>(threadIdx.x) / kWarp;
      for (int c = warp; c < columns_; c += kRecurrenceWarps) Column(c, t, steps);
      __syncthreads();
    }
    StoreRings();
  }

  __device__ void Clear() {
    for (int32_t t = 0; t < tokens_; ++t) {
      for (auto c = static_cast<int32_t>(threadIdx.x); c < columns_; c += kRecurrenceThreads) {
        *Output(t, c) = FromFloat<T>(0.0f);
      }
    }
  }

 private:
  // q, k or v (which = 0, 1, 2) of a token.
  __device__ const T& Input(int which, int32_t t, int32_t column) const {
    return x_.qkv[int64_t{first_row_ + t} * x_.qkv_stride + which * h3_.d_model + first_ + column];
  }
  __device__ T* Output(int32_t t, int32_t column) const {
    return x_.o + int64_t{first_row_ + t} * x_.o_stride + OutputChannel(h3_, first_ + column);
  }
  __device__ T* Ring(int32_t column) const {
    const int64_t channel = static_cast<int64_t>(slot_) * h3_.d_model + first_ + column;
    return x_.state.rings + channel * h3_.taps;
  }

  __device__ float ShiftSsm(int32_t t, int32_t column) const {
    const float* taps = h3_.fir + static_cast<int64_t>(first_ + column) * h3_.taps;
    const T* ring = Ring(column);
    int32_t at = (start_ + t) % h3_.taps;
    float sum = 0;
    for (int32_t j = 0; j < h3_.taps && j <= start_ + t; ++j) {
      const float k = Widen(j <= t ? Input(1, t - j, column) : ring[at]);
      sum = fmaf(taps[j], k, sum);
      at = at == 0 ? h3_.taps - 1 : at - 1;
    }
    return sum;
  }

  __device__ void Load(int32_t t, int steps) {
    for (int i = static_cast<int>(threadIdx.x); i < steps * columns_; i += kRecurrenceThreads) {
      const int32_t token = t + i / columns_;
      const int32_t column = i % columns_;
      ks_[i] = ShiftSsm(token, column);
      v_[i] = Widen(Input(2, token, column));
      q_[i] = Widen(Input(0, token, column));
    }
  }

  // One output channel for `steps` tokens from t on; all lanes of a warp.
  __device__ void Column(int32_t column, int32_t t, int steps) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int32_t head_dim = h3_.head_dim;
    const int32_t first_key = column / head_dim * head_dim;
    float o[kSteps] = {};
    for (int32_t key = first_key; key < first_key + head_dim; ++key) {
      const int64_t row = static_cast<int64_t>(first_ + key) * head_dim + column % head_dim;
      for (int32_t n = lane; n < h3_.modes; n += kWarp) {
        Mode(row, n, key, column, start_ + t > 0, steps, o);
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      if (i >= steps) break;
      const float sum = WarpSum(o[i]);
      if (lane == i) *Output(t + i, column) = FromFloat<T>(sum);
    }
  }

  // Mode n of a row: advances its state, and adds what it gives to o.
  __device__ void Mode(int64_t row, int32_t n, int32_t key, int32_t column, bool has_state,
                       int steps, float (&o)[kSteps]) {
    const int64_t rows = static_cast<int64_t>(h3_.d_model) * h3_.head_dim;
    float2* state = x_.state.modes + (slot_ * rows + row) * h3_.modes + n;
    const int32_t head = (first_ + key) / h3_.head_dim;
    const float2 a = h3_.a[static_cast<int64_t>(head) * h3_.modes + n];
    const float2 w = h3_.w[static_cast<int64_t>(head) * h3_.modes + n];
    const float skip = n == 0 ? h3_.skip[head] : 0.0f;
    float2 s = has_state ? *state : make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      if (i >= steps) break;
      const float u = ks_[i * columns_ + key] * v_[i * columns_ + column];
      s = ComplexMultiplyAdd(a, s, make_float2(u, 0.0f));
      const float y = fmaf(w.x, s.x, fmaf(-w.y, s.y, skip * u));
      o[i] = fmaf(q_[i * columns_ + key], y, o[i]);
    }
    *state = s;
  }

  __device__ void StoreRings() {
    const int32_t kept = min(tokens_, h3_.taps);
    for (auto i = static_cast<int32_t>(threadIdx.x); i < kept * columns_; i += kRecurrenceThreads) {
      const int32_t t = tokens_ - 1 - i / columns_;
      const int32_t column = i % columns_;
      Ring(column)[(start_ + t) % h3_.taps] = Input(1, t, column);
    }
  }

  const H3Operands<T>& x_;
  const H3View& h3_;
  const int32_t slot_;
  // Of 32 bits: a remainder of 64 is a call, around which registers are spilled.
  const int32_t first_row_;
  const int32_t tokens_;
  const int32_t start_;
  const int32_t first_;    // channel
  const int32_t columns_;  // channels
  float* ks_;              // [kSteps, columns]
  float* v_;
  float* q_;
};

// Grid: (groups of `columns` channels, parts).
template <typename T, int kSteps>
__global__ void __launch_bounds__(kRecurrenceThreads)
    RecurrenceKernel(const RecurrenceArguments<T> arguments) {
  BeginDependent();
  const SequencePart part = arguments.template Part<kSteps>(static_cast<int32_t>(blockIdx.y));
  RecurrenceBlock<T, kSteps> block(arguments, part);
  if (part.slot < 0) {
    block.Clear();
  } else {
    block.Run();
  }
}

// Tokens that a mode stays in registers for.
constexpr int kSequenceSteps = 16;

template <typename T, int kSteps>
void Run(Device& device, const char* operation, RecurrenceArguments<T> arguments, int64_t parts) {
  const H3View& h3 = arguments.x.constants;
  arguments.columns = std::max(1, kRecurrenceWarps / h3.head_dim) * h3.head_dim;
  const int32_t groups = (h3.d_model + arguments.columns - 1) / arguments.columns;
  Launch(device, operation, RecurrenceKernel<T, kSteps>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(parts)),
          .threads = dim3(kRecurrenceThreads),
          .shared_bytes = RecurrenceBytes(arguments.columns, kSteps),
          .dependent = true},
         arguments);
}

template <typename T>
void RunSequence(Device& device, const H3SequenceCall& call) {
  Run<T, kSequenceSteps>(
      device, "h3_recurrence",
      {.x = MakeOperands<T>(call), .parts = CopyParts(device, call.parts), .columns = 0},
      static_cast<int64_t>(call.parts.size()));
}

template <typename T>
void RunStep(Device& device, const H3StepCall& call) {
  Run<T, 1>(device, "h3_recurrence_step",
            {.x = MakeStepOperands<T>(call), .parts = nullptr, .columns = 0}, call.slots.cols);
}

}  // namespace

void H3Recurrence(Device& device, const H3SequenceCall& call) {
  assert(call.qkv.dtype == call.constants.activations() && call.o.dtype == call.qkv.dtype);
  call.qkv.dtype == DType::kBF16 ? RunSequence<BF16>(device, call)
                                 : RunSequence<float>(device, call);
}

void H3RecurrenceStep(Device& device, const H3StepCall& call) {
  assert(call.qkv.dtype == call.constants.activations() && call.o.dtype == call.qkv.dtype);
  call.qkv.dtype == DType::kBF16 ? RunStep<BF16>(device, call) : RunStep<float>(device, call);
}

}  // namespace hippodrome::cuda
