// A warp computes a channel of a sequence, its lanes holding modes. Parts are launched one by one.
#include "kernels/cuda/ssm/ssm_sequence.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

constexpr int kSsmThreads = 128;
constexpr int kSsmWarps = kSsmThreads / kWarp;

// `tokens` rows of each of some sequences.
template <typename T>
struct SsmArguments {
  SsmView ssm;
  const T* u;  // rows of u_stride
  int64_t u_stride;
  T* y;  // rows of y_stride
  int64_t y_stride;
  float2* states;        // [slots, channels, modes]
  const int32_t* slots;  // of each sequence, -1: zeros; null: `slot`
  int32_t slot;
  int64_t tokens;
};

// One channel of one sequence; all lanes of a warp.
template <typename T>
class SsmChannel {
 public:
  __device__ SsmChannel(const SsmArguments<T>& a, int32_t channel, int32_t slot)
      : a_(a),
        modes_(a.ssm.modes),
        channel_(channel),
        lane_(static_cast<int>(threadIdx.x) % kWarp),
        state_(a.states + (int64_t{slot} * a.ssm.channels + channel) * modes_) {}

  __device__ void Clear() {
    for (int64_t t = lane_; t < a_.tokens; t += kWarp) *Output(t) = FromFloat<T>(0.0f);
  }

  // Modes stay in registers for some tokens, and lanes are summed once per output.
  __device__ void Diagonal() {
    constexpr int kSteps = 16;
    const auto* modes =
        static_cast<const DiagonalMode*>(a_.ssm.modes_of_channels) + int64_t{channel_} * modes_;
    for (int64_t t = 0; t < a_.tokens; t += kSteps) {
      const int steps = static_cast<int>(min(int64_t{kSteps}, a_.tokens - t));
      float u[kSteps];
      float sum[kSteps] = {};
#pragma unroll
      for (int i = 0; i < kSteps; ++i) u[i] = i < steps ? Input(t + i) : 0.0f;
      for (int32_t n = lane_; n < modes_; n += kWarp) {
        const DiagonalMode mode = modes[n];
        float2 x = state_[n];
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
          if (i >= steps) break;
          x = ComplexMultiplyAdd(mode.a, x, make_float2(u[i], 0.0f));
          sum[i] = AddReal(mode.w, x, sum[i]);
        }
        state_[n] = x;
      }
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        if (i >= steps) break;
        Put(t + i, u[i], WarpSum(sum[i]));
      }
    }
  }

  // r of a token takes all modes of the one before, so lanes are summed twice per token.
  __device__ void LowRank() {
    const auto* modes =
        static_cast<const LowRankMode*>(a_.ssm.modes_of_channels) + int64_t{channel_} * modes_;
    float r = 0;
    for (int32_t n = lane_; n < modes_; n += kWarp) r = AddReal(modes[n].v, state_[n], r);
    for (int64_t t = 0; t < a_.tokens; ++t) {
      const float along = WarpSum(r);
      const float u = Input(t);
      float sum = 0;
      r = 0;
      for (int32_t n = lane_; n < modes_; n += kWarp) {
        const LowRankMode mode = modes[n];
        const float2 added =
            make_float2(fmaf(-mode.p.x, along, mode.b.x * u), fmaf(-mode.p.y, along, mode.b.y * u));
        const float2 x = ComplexMultiplyAdd(mode.d, state_[n], added);
        state_[n] = x;
        r = AddReal(mode.v, x, r);
        sum = AddReal(mode.c, x, sum);
      }
      Put(t, u, WarpSum(sum));
    }
  }

 private:
  // Re a x + sum.
  __device__ static float AddReal(float2 a, float2 x, float sum) {
    return fmaf(-a.y, x.y, fmaf(a.x, x.x, sum));
  }
  __device__ float Input(int64_t t) const {
    return Widen(a_.u[(blockIdx.y * a_.tokens + t) * a_.u_stride + channel_]);
  }
  __device__ T* Output(int64_t t) const {
    return a_.y + (blockIdx.y * a_.tokens + t) * a_.y_stride + channel_;
  }
  __device__ void Put(int64_t t, float u, float sum) {
    if (lane_ == 0) *Output(t) = FromFloat<T>(fmaf(a_.ssm.skip[channel_], u, sum));
  }

  const SsmArguments<T>& a_;
  const int32_t modes_;
  const int32_t channel_;
  const int lane_;
  float2* state_;
};

// Grid: (groups of kSsmWarps channels, sequences).
template <typename T>
__global__ void __launch_bounds__(kSsmThreads) SsmKernel(const SsmArguments<T> a) {
  BeginDependent();
  const int32_t channel =
      static_cast<int32_t>(blockIdx.x) * kSsmWarps + static_cast<int32_t>(threadIdx.x) / kWarp;
  if (channel >= a.ssm.channels) return;
  const int32_t slot = a.slots == nullptr ? a.slot : a.slots[blockIdx.y];
  if (slot < 0) {
    SsmChannel<T>(a, channel, 0).Clear();
  } else if (a.ssm.low_rank != 0) {
    SsmChannel<T>(a, channel, slot).LowRank();
  } else {
    SsmChannel<T>(a, channel, slot).Diagonal();
  }
}

// Where the sequences of a launch are: one slot, or those of a device array.
struct SsmSequences {
  const int32_t* slots;
  int32_t slot;
  int64_t count;
};

template <typename T>
void Run(Device& device, const char* operation, const SsmConstants& constants, const Tensor& u,
         RecurrentSlots& state, const SsmSequences& sequences, const Tensor& y) {
  const SsmView& ssm = constants.view();
  const SsmArguments<T> arguments = {.ssm = ssm,
                                     .u = DeviceRow<T>(u, 0),
                                     .u_stride = u.stride,
                                     .y = DeviceRow<T>(y, 0),
                                     .y_stride = y.stride,
                                     .states = reinterpret_cast<float2*>(state.Slot(0)),
                                     .slots = sequences.slots,
                                     .slot = sequences.slot,
                                     .tokens = u.rows / sequences.count};
  const int groups = (ssm.channels + kSsmWarps - 1) / kSsmWarps;
  Launch(device, operation, SsmKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(sequences.count)),
          .threads = dim3(kSsmThreads),
          .dependent = true},
         arguments);
}

void RunAny(Device& device, const char* operation, const SsmConstants& constants, const Tensor& u,
            RecurrentSlots& state, const SsmSequences& sequences, const Tensor& y) {
  assert(u.dtype == constants.activations() && y.dtype == u.dtype);
  assert(u.cols == constants.view().channels && y.cols == u.cols && y.rows == u.rows);
  if (u.rows == 0) return;
  const auto run = u.dtype == DType::kBF16 ? Run<BF16> : Run<float>;
  run(device, operation, constants, u, state, sequences, y);
}

}  // namespace

void SsmSequence(Device& device, const SsmConstants& constants, Tensor u, RecurrentSlots& state,
                 const SequenceParts& parts, Tensor y) {
  auto capture = parts.captures.begin();
  for (size_t i = 0; i < parts.parts.size(); ++i) {
    const SequencePart& part = parts.parts[i];
    int64_t done = 0;
    const auto run_to = [&](int64_t end) {
      const int64_t row = part.first_row + done;
      RunAny(device, "ssm_sequence", constants, u.Rows(row, end - done), state,
             {.slots = nullptr, .slot = part.slot, .count = 1}, y.Rows(row, end - done));
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

void SsmStep(Device& device, const SsmConstants& constants, Tensor u, RecurrentSlots& state,
             Tensor slots, Tensor y) {
  assert(slots.cols == u.rows);
  RunAny(device, "ssm_step", constants, u, state,
         {.slots = DeviceRow<int32_t>(slots, 0), .slot = -1, .count = u.rows}, y);
}

}  // namespace hippodrome::cuda
