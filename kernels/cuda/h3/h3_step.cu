// H3 for one token of each of several sequences: head_dim 1, N = 64.
//
// The states are all that is read, and memory bounds it. A warp takes two channels, 16 lanes each;
// a lane holds two modes and four entries of the ring, so that a warp reads and writes states in
// runs of 512 bytes. Constants stay in registers, and the taps, which turn against the ring as
// positions do, in shared memory, while a block goes through some sequences; the state of the next
// sequence is fetched before the present one is worked on.
#include "kernels/cuda/h3/h3_step.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/h3/h3_lookahead.h"
#include "kernels/cuda/h3/h3_operands.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int kStepTaps = 64;
constexpr int kStepLanes = 16;  // of a channel
constexpr int kStepThreads = 256;
constexpr int kStepBlocks = 4;  // per multiprocessor, by registers
constexpr int kStepChannels = kStepThreads / kStepLanes;
constexpr int kStepSequences = kWarp;  // of a block at most
constexpr size_t kStepBytes = size_t{kStepChannels} * kStepTaps * sizeof(float);

// Over the lanes of a channel; each of them gets the result, the same bits.
__device__ inline float ChannelSum(float x) {
  for (int mask = kStepLanes / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(kAllLanes, x, mask);
  return x;
}

// What a lane needs of one sequence.
template <typename T>
struct StepInputs {
  float4 modes;  // two
  Four<T> ring;
  T q, k, v;
};

// One lane of a channel: its constants, and a step of its part of a state.
template <typename T>
class StepLane {
 public:
  __device__ explicit StepLane(const H3Operands<T>& x) : x_(x) {
    const int thread = static_cast<int>(threadIdx.x);
    lane_ = thread % kStepLanes;
    channel_ = static_cast<int32_t>(blockIdx.x) * kStepChannels + thread / kStepLanes;
    active_ = channel_ < x.constants.d_model;
    const int half = thread / kStepLanes % 2;
    taps_ = reinterpret_cast<float*>(SharedMemory()) + thread / kWarp * 2 * kStepTaps +
            half * kStepLanes;
    modes_ = reinterpret_cast<float4*>(x.state.modes) + LaneOffset();
    ring_ = reinterpret_cast<Four<T>*>(x.state.rings) + LaneOffset();
    slot_stride_ = x.constants.d_model * kStepLanes;
    q_ = x.qkv + channel_;
    qkv_stride_ = static_cast<int32_t>(x.qkv_stride);
    o_ = x.o + channel_;
    o_stride_ = static_cast<int32_t>(x.o_stride);
    if (active_) LoadConstants();
    __syncwarp();
  }

  __device__ StepInputs<T> Fetch(int32_t row, int32_t slot) const {
    StepInputs<T> in = {};
    if (slot < 0 || !active_) return in;
    in.modes = *Modes(slot);
    in.ring = LoadFour(Ring(slot)->values);
    const T* q = q_ + static_cast<int64_t>(row) * qkv_stride_;
    in.q = q[0];
    in.k = q[x_.constants.d_model];
    in.v = q[2 * x_.constants.d_model];
    return in;
  }

  // Takes a token in; all lanes of a warp, with the same row, slot and position.
  __device__ void Run(int32_t row, int32_t slot, int32_t position, const StepInputs<T>& in) const {
    if (slot < 0) return Output(row, 0.0f);
    const float u = ChannelSum(ShiftSsm(position, in)) * Widen(in.v);
    const float2 first = ComplexMultiplyAdd({a_.x, a_.y}, {in.modes.x, in.modes.y}, {u, 0.0f});
    const float2 second = ComplexMultiplyAdd({a_.z, a_.w}, {in.modes.z, in.modes.w}, {u, 0.0f});
    float y = fmaf(w_.x, first.x, -w_.y * first.y);
    y = fmaf(w_.z, second.x, fmaf(-w_.w, second.y, y));
    y = fmaf(skip_, u, ChannelSum(y));
    if (active_) {
      *Modes(slot) = make_float4(first.x, first.y, second.x, second.y);
      const int at = (position & (kStepTaps - 1)) - 4 * lane_;
      if (at >= 0 && at < 4) Ring(slot)->values[at] = in.k;
    }
    Output(row, Widen(in.q) * y);
  }

 private:
  // In units of a lane's share of a channel: two modes, four taps or ring entries.
  __device__ int64_t LaneOffset() const {
    return static_cast<int64_t>(channel_) * kStepLanes + lane_;
  }

  __device__ void LoadConstants() {
    const H3View& h3 = x_.constants;
    a_ = reinterpret_cast<const float4*>(h3.a)[LaneOffset()];
    w_ = reinterpret_cast<const float4*>(h3.w)[LaneOffset()];
    skip_ = h3.skip[channel_];
    const Four<float> four = LoadFour(h3.fir + 4 * LaneOffset());
#pragma unroll
    for (int i = 0; i < 4; ++i) *Tap(4 * lane_ + i) = four.values[i];
  }

  // [age % 4, channel of the warp, age / 4]: lanes read ages that differ by 4 from different banks.
  __device__ float* Tap(int age) const { return taps_ + age % 4 * kWarp + age / 4; }

  __device__ float4* Modes(int32_t slot) const {
    return modes_ + static_cast<int64_t>(slot) * slot_stride_;
  }
  __device__ Four<T>* Ring(int32_t slot) const {
    return ring_ + static_cast<int64_t>(slot) * slot_stride_;
  }

  // This lane's part of sum_j taps[j] k_{t-j}.
  __device__ float ShiftSsm(int32_t position, const StepInputs<T>& in) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int age = (position - 4 * lane_ - i) & (kStepTaps - 1);
      sum = fmaf(*Tap(age), Widen(age == 0 ? in.k : in.ring.values[i]), sum);
    }
    return sum;
  }

  __device__ void Output(int32_t row, float o) const {
    if (active_ && lane_ == 0) o_[static_cast<int64_t>(row) * o_stride_] = FromFloat<T>(o);
  }

  const H3Operands<T>& x_;
  int lane_;
  int32_t channel_;
  bool active_;    // other lanes stand beyond the last channel
  float4* modes_;  // of slot 0
  Four<T>* ring_;
  int32_t slot_stride_;
  const T* q_;  // of row 0
  int32_t qkv_stride_;
  T* o_;
  int32_t o_stride_;
  float* taps_;
  float4 a_ = {};
  float4 w_ = {};
  float skip_ = 0;
};

// Grid: (groups of kStepChannels channels, groups of `share` <= kStepSequences sequences).
template <typename T>
__global__ void __launch_bounds__(kStepThreads, kStepBlocks)
    StepKernel(const H3Operands<T> x, int32_t sequences, int32_t share) {
  BeginDependent();
  const StepLane<T> lane(x);
  const int32_t first = static_cast<int32_t>(blockIdx.y) * share;
  const int32_t count = min(share, sequences - first);
  const int mine = static_cast<int>(threadIdx.x) % kWarp;
  const int32_t slots = mine < count ? x.slots[first + mine] : -1;
  const int32_t positions = mine < count ? x.positions[first + mine] : 0;
  int32_t slot = __shfl_sync(kAllLanes, slots, 0);
  StepInputs<T> next = lane.Fetch(first, slot);
  for (int32_t i = 0; i < count; ++i) {
    const StepInputs<T> in = next;
    const int32_t present = slot;
    const int32_t position = __shfl_sync(kAllLanes, positions, i);
    slot = __shfl_sync(kAllLanes, slots, min(i + 1, kWarp - 1));
    if (i + 1 < count) next = lane.Fetch(first + i + 1, slot);
    lane.Run(first + i, present, position, in);
  }
}

// Blocks go through as many sequences as leaves one block for every place on the device.
int64_t SequencesPerBlock(const Device& device, int64_t groups, int64_t sequences) {
  const int64_t places = int64_t{device.multiprocessors()} * kStepBlocks;
  const int64_t parts = std::clamp<int64_t>(places / groups, 1, sequences);
  return std::min<int64_t>((sequences + parts - 1) / parts, kStepSequences);
}

template <typename T>
void Run(Device& device, const H3StepCall& call) {
  const int64_t sequences = call.slots.cols;
  const int64_t groups = (call.constants.view().d_model + kStepChannels - 1) / kStepChannels;
  const int64_t share = SequencesPerBlock(device, groups, sequences);
  const int64_t parts = (sequences + share - 1) / share;
  Launch(device, "h3_step", StepKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(parts)),
          .threads = dim3(kStepThreads),
          .shared_bytes = kStepBytes,
          .dependent = true},
         MakeStepOperands<T>(call), sequences, share);
}

}  // namespace

void H3Step(Device& device, const H3StepCall& call) {
  const H3View& h3 = call.constants.view();
  assert(call.qkv.dtype == call.constants.activations() && call.o.dtype == call.qkv.dtype);
  assert(call.qkv.cols == 3 * h3.d_model && call.o.cols == h3.d_model);
  if (call.state.looks_ahead()) return H3LookaheadStep(device, call);
  if (h3.head_dim != 1 || h3.taps != kStepTaps) return H3RecurrenceStep(device, call);
  call.qkv.dtype == DType::kBF16 ? Run<BF16>(device, call) : Run<float>(device, call);
}

}  // namespace hippodrome::cuda
