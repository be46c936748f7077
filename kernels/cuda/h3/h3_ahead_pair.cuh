// The work at the start of a block of the look-ahead (h3_lookahead.h), on two channels by a warp.
// 16 lanes take a channel: as modes, a lane holds two; as time, it stands for one token.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_AHEAD_PAIR_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_AHEAD_PAIR_CUH_

#include "kernels/cuda/h3/h3_operands.cuh"

namespace hippodrome::cuda {

inline constexpr int kPairLanes = kWarp / 2;
static_assert(kPairLanes == kAheadSteps && 4 * kPairLanes == kAheadTaps);

// What a lane knows of sums over its channel, in one register per value, becomes the sum of one
// value: that of its own number.
__device__ inline float TransposeAndSum(float (&values)[kPairLanes]) {
  const int lane = static_cast<int>(threadIdx.x) % kPairLanes;
#pragma unroll
  for (int width = kPairLanes / 2; width > 0; width /= 2) {
    const bool upper = (lane & width) != 0;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float kept = upper ? values[i + width] : values[i];
      const float given = upper ? values[i] : values[i + width];
      values[i] = kept + __shfl_xor_sync(kAllLanes, given, width);
    }
  }
  return values[0];
}

// One channel of the pair.
struct PairScratch {
  float taps[kAheadTaps + kAheadSteps];  // taps[1], taps[2], ..., then zeros
  float keys[kAheadTaps];                // k of the last tokens, the last one first
};

template <typename T>
class ChannelPair {
 public:
  // The pair starts at `first`. Every lane of a warp, with the same arguments.
  __device__ ChannelPair(const H3Operands<T>& x, void* ahead, int32_t first)
      : x_(x),
        ahead_(ahead),
        lane_(static_cast<int>(threadIdx.x) % kPairLanes),
        channel_(first + static_cast<int>(threadIdx.x) % kWarp / kPairLanes),
        active_(channel_ < x.constants.d_model) {
    if (active_) a_ = reinterpret_cast<const float4*>(x.constants.a)[LaneOffset()];
  }

  // Takes the last `pending` tokens before `position` into ring and modes.
  __device__ void Absorb(int32_t slot, int32_t position, int32_t pending) const {
    const Pending tokens = LoadPending(slot, position, pending);
    Absorb(slot, position, pending, tokens, LoadModes(slot));
  }

  // What Start() needs. scratch: of the warp, for each channel.
  __device__ void Prepare(PairScratch* scratch) {
    scratch_ = scratch + static_cast<int>(threadIdx.x) % kWarp / kPairLanes;
    Four<float> taps = {};
    if (active_) {
      w_ = reinterpret_cast<const float4*>(x_.constants.w)[LaneOffset()];
      taps = reinterpret_cast<const Four<float>*>(x_.constants.fir)[LaneOffset()];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (4 * lane_ + i > 0) scratch_->taps[4 * lane_ + i - 1] = taps.at[i];
    }
    scratch_->taps[kAheadTaps - 1 + lane_] = 0;
    if (lane_ == 0) scratch_->taps[kAheadTaps + kAheadSteps - 1] = 0;
  }

  // Absorbs as above, then writes Y and F of the block that starts at `position`.
  __device__ void Start(int32_t slot, int32_t position, int32_t pending) const {
    const Pending tokens = LoadPending(slot, position, pending);
    const Four<T> ring = LoadRing(slot);
    const float4 modes = Absorb(slot, position, pending, tokens, LoadModes(slot));
    LayKeys(position, pending, tokens, ring);
    const float y = ModesAhead(modes);
    const float f = KeysAhead();
    const int32_t row = position % kAheadSteps + lane_;
    if (!active_ || row >= kAheadSteps) return;
    const AheadSlot<T> to = Ahead(slot);
    to.sums[Row(row)] = y;
    to.keys_before[Row(row)] = f;
  }

 private:
  struct Pending {  // of the lane's token
    float kv;
    T key;
  };

  __device__ int64_t LaneOffset() const {
    return static_cast<int64_t>(channel_) * kPairLanes + lane_;
  }
  __device__ int64_t StateOffset(int32_t slot) const {
    return static_cast<int64_t>(slot) * x_.constants.d_model * kPairLanes + LaneOffset();
  }
  __device__ AheadSlot<T> Ahead(int32_t slot) const { return {ahead_, slot, x_.constants.d_model}; }
  __device__ int64_t Row(int32_t row) const {
    return static_cast<int64_t>(row) * x_.constants.d_model + channel_;
  }

  __device__ Pending LoadPending(int32_t slot, int32_t position, int32_t pending) const {
    Pending token = {};
    if (!active_ || lane_ >= pending) return token;
    const AheadSlot<T> from = Ahead(slot);
    const int64_t at = Row((position - pending + lane_) % kAheadSteps);
    token.kv = from.sums[at];
    token.key = from.keys[at];
    return token;
  }
  __device__ float4 LoadModes(int32_t slot) const {
    if (!active_) return {};
    return reinterpret_cast<const float4*>(x_.state.modes)[StateOffset(slot)];
  }
  __device__ Four<T> LoadRing(int32_t slot) const {
    if (!active_) return {};
    return reinterpret_cast<const Four<T>*>(x_.state.rings)[StateOffset(slot)];
  }

  __device__ float4 Absorb(int32_t slot, int32_t position, int32_t pending, const Pending& tokens,
                           float4 modes) const {
    const int first_lane = static_cast<int>(threadIdx.x) % kWarp / kPairLanes * kPairLanes;
#pragma unroll
    for (int i = 0; i < kAheadSteps; ++i) {
      if (i >= pending) break;
      const float kv = __shfl_sync(kAllLanes, tokens.kv, first_lane + i);
      const float2 first = ComplexMultiplyAdd({a_.x, a_.y}, {modes.x, modes.y}, {kv, 0.0f});
      const float2 second = ComplexMultiplyAdd({a_.z, a_.w}, {modes.z, modes.w}, {kv, 0.0f});
      modes = make_float4(first.x, first.y, second.x, second.y);
    }
    if (active_ && pending > 0) {
      reinterpret_cast<float4*>(x_.state.modes)[StateOffset(slot)] = modes;
    }
    __syncwarp();  // Other lanes may have been reading the ring.
    if (active_ && lane_ < pending) {
      T* ring = x_.state.rings +
                (static_cast<int64_t>(slot) * x_.constants.d_model + channel_) * kAheadTaps;
      ring[(position - pending + lane_) % kAheadTaps] = tokens.key;
    }
    return modes;
  }

  // The keys before `position`, by age: the ring's, as it was loaded, and over them the pending.
  __device__ void LayKeys(int32_t position, int32_t pending, const Pending& tokens,
                          const Four<T>& ring) const {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scratch_->keys[(position - 1 - 4 * lane_ - i) & (kAheadTaps - 1)] = Widen(ring.at[i]);
    }
    __syncwarp();
    if (lane_ < pending) scratch_->keys[pending - 1 - lane_] = Widen(tokens.key);
    __syncwarp();
  }

  // Y of the lane's token: Re sum_n w[n] dA[n]^(lane + 1) S[n].
  __device__ float ModesAhead(float4 modes) const {
    float2 first = ComplexMultiply({w_.x, w_.y}, {modes.x, modes.y});
    float2 second = ComplexMultiply({w_.z, w_.w}, {modes.z, modes.w});
    float values[kAheadSteps];
#pragma unroll
    for (float& value : values) {
      first = ComplexMultiply({a_.x, a_.y}, first);
      second = ComplexMultiply({a_.z, a_.w}, second);
      value = first.x + second.x;
    }
    return TransposeAndSum(values);
  }

  // F of the lane's token e = lane: sum_m taps[e + 1 + m] key[m], m the age. A lane first sums a
  // quarter of the ages for each of four tokens, so that what it loads serves four times.
  __device__ float KeysAhead() const {
    const int quarter = lane_ % 4;
    const int first_token = lane_ - quarter;
    const int first_age = quarter * kAheadTaps / 4;
    const auto* taps =
        reinterpret_cast<const Four<float>*>(scratch_->taps + first_token + first_age);
    const auto* keys = reinterpret_cast<const Four<float>*>(scratch_->keys + first_age);
    float sums[4] = {};
    Four<float> now = taps[0];
#pragma unroll
    for (int m = 0; m < kAheadTaps / 16; ++m) {
      const Four<float> next = taps[m + 1];
      const float window[7] = {now.at[0],  now.at[1],  now.at[2], now.at[3],
                               next.at[0], next.at[1], next.at[2]};
      const Four<float> key = keys[m];
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        sums[i / 4] = fmaf(window[i / 4 + i % 4], key.at[i % 4], sums[i / 4]);
      }
      now = next;
    }
#pragma unroll
    for (float& sum : sums) {
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
    }
    const float low = quarter == 0 ? sums[0] : sums[1];
    const float high = quarter == 2 ? sums[2] : sums[3];
    return quarter < 2 ? low : high;
  }

  const H3Operands<T>& x_;
  void* ahead_;
  const int lane_;
  const int32_t channel_;
  const bool active_;  // other lanes stand beyond the last channel
  float4 a_ = {};
  float4 w_ = {};
  PairScratch* scratch_ = nullptr;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_AHEAD_PAIR_CUH_
