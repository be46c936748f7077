// The kernels of the blocked look-ahead; h3_lookahead.h says what it is.
//
// A block takes kAheadChannels channels of one sequence per warp, a lane for a channel. Where a
// sequence starts a block of tokens, all warps of the block share the work: that takes 16 times the
// lanes.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_LOOKAHEAD_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_LOOKAHEAD_CUH_

#include "kernels/cuda/h3/h3_operands.cuh"

namespace hippodrome::cuda {

// The work at the start of a block of the look-ahead (h3_lookahead.h), on two channels by a warp.
// 16 lanes take a channel: as modes, a lane holds two; as time, it stands for one token.

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

// One channel of the pair. A quarter of the ages, and the taps that its keys may meet, lie
// together. The lanes of a channel read all quarters at once, both channels at once: rows begin in
// different banks.
struct alignas(16) PairScratch {
  static constexpr int kQuarter = kAheadTaps / 4;

  // Of quarter i: taps[16 i + 1], taps[16 i + 2], ..., zeros behind the last.
  float taps[4][2 * kQuarter + 8];
  // k of the last tokens, the last one first.
  float keys[4][kQuarter + 8];
  float apart[4];

  // Tap `i` + 1, in the quarters that read it.
  __device__ void SetTap(int i, float tap) {
    const int quarter = i / kQuarter;
    if (quarter < 4) taps[quarter][i % kQuarter] = tap;
    if (quarter > 0) taps[quarter - 1][i % kQuarter + kQuarter] = tap;
  }
  __device__ float& Key(int age) { return keys[age / kQuarter][age % kQuarter]; }
};
static_assert(kAheadSteps == PairScratch::kQuarter);

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
      taps = LoadFour(x_.constants.fir + 4 * LaneOffset());
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (4 * lane_ + i > 0) scratch_->SetTap(4 * lane_ + i - 1, taps.values[i]);
    }
    scratch_->SetTap(kAheadTaps - 1 + lane_, 0);
    if (lane_ == 0) scratch_->SetTap(kAheadTaps + kAheadSteps - 1, 0);
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
    return LoadFour(x_.state.rings + 4 * StateOffset(slot));
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
      scratch_->Key((position - 1 - 4 * lane_ - i) & (kAheadTaps - 1)) = Widen(ring.values[i]);
    }
    __syncwarp();
    if (lane_ < pending) scratch_->Key(pending - 1 - lane_) = Widen(tokens.key);
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
    const float* taps = scratch_->taps[quarter] + lane_ - quarter;  // from its first token on
    const float* keys = scratch_->keys[quarter];
    float sums[4] = {};
    Four<float> now = LoadFour(taps);
#pragma unroll
    for (int m = 0; m < kAheadTaps / 16; ++m) {
      const Four<float> next = LoadFour(taps + 4 * (m + 1));
      const float window[7] = {now.values[0],  now.values[1],  now.values[2], now.values[3],
                               next.values[0], next.values[1], next.values[2]};
      const Four<float> key = LoadFour(keys + 4 * m);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        sums[i / 4] = fmaf(window[i / 4 + i % 4], key.values[i % 4], sums[i / 4]);
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

inline constexpr int kAheadSequences = 8;  // of a block: its warps
inline constexpr int kAheadThreads = kAheadSequences * kWarp;
inline constexpr int kAheadPairs = kAheadChannels / 2;
static_assert(kAheadChannels == kWarp);

// A row of a step.
struct AheadRow {
  int32_t slot;  // negative: inert
  int32_t position;
  int32_t base;

  __device__ int32_t pending() const { return PendingTokens(base, position); }
  // Whether its token is the first of a block of tokens.
  __device__ bool starts() const {
    return slot >= 0 && (position == base || position % kAheadSteps == 0);
  }
};

struct AheadShared {
  AheadRow rows[kAheadSequences];
  // The first taps of the channels and their kernels; a channel's values in one bank.
  float taps[kAheadSteps][kAheadChannels + 1];
  float kernel[kAheadSteps][kAheadChannels + 1];
  alignas(16) PairScratch pairs[kAheadSequences][2];
};

// One lane: a channel of the warp's row.
template <typename T>
class AheadLane {
 public:
  // A row beyond the last has slot -1.
  __device__ AheadLane(const H3Operands<T>& x, void* ahead, const AheadRow& row, int32_t index)
      : x_(x),
        row_(row),
        index_(index),
        channel_(static_cast<int32_t>(blockIdx.x) * kAheadChannels +
                 static_cast<int>(threadIdx.x) % kWarp),
        slot_(ahead, row.slot < 0 ? 0 : row.slot, x.constants.d_model),
        at_(row.position % kAheadSteps) {}

  // Starts to load all that Run() needs: before anything else waits for memory.
  __device__ void Load() {
    if (!Active()) return;
    LoadAhead();
    const T* q = x_.qkv + index_ * x_.qkv_stride + channel_;
    q_ = Widen(q[0]);
    key_ = q[x_.constants.d_model];
    v_ = Widen(q[2 * x_.constants.d_model]);
    // Rows before that of this token; those that are not of its block count for nothing later, but
    // knowing would mean waiting for the base.
#pragma unroll
    for (int j = 1; j < kAheadSteps; ++j) {
      if (j > at_) break;
      keys_[j] = slot_.keys[Row(at_ - j)];
      sums_[j] = slot_.sums[Row(at_ - j)];
    }
  }

  __device__ void Run(const AheadShared& shared) {
    if (!Active()) return;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const bool starts = row_.starts();
    if (starts) LoadAhead();  // It has just been written.
    const int32_t pending = starts ? 0 : row_.pending();
    float ks = fmaf(shared.taps[0][lane], Widen(key_), keys_before_);
    float y = sums_[0];
#pragma unroll
    for (int j = 1; j < kAheadSteps; ++j) {
      if (j > pending) break;
      ks = fmaf(shared.taps[j][lane], Widen(keys_[j]), ks);
      y = fmaf(shared.kernel[j][lane], sums_[j], y);
    }
    const float kv = ks * v_;
    slot_.keys[Row(at_)] = key_;
    slot_.sums[Row(at_)] = kv;
    Output(q_ * fmaf(shared.kernel[0][lane], kv, y));
  }

  __device__ void Clear() const {
    if (channel_ < x_.constants.d_model) Output(0.0f);
  }

 private:
  __device__ bool Active() const { return row_.slot >= 0 && channel_ < x_.constants.d_model; }
  __device__ int64_t Row(int32_t row) const {
    return static_cast<int64_t>(row) * x_.constants.d_model + channel_;
  }
  // Of this token, what its block's past gives.
  __device__ void LoadAhead() {
    keys_before_ = slot_.keys_before[Row(at_)];
    sums_[0] = slot_.sums[Row(at_)];
  }
  __device__ void Output(float o) const { x_.o[index_ * x_.o_stride + channel_] = FromFloat<T>(o); }

  const H3Operands<T>& x_;
  const AheadRow row_;
  const int64_t index_;
  const int32_t channel_;
  const AheadSlot<T> slot_;
  const int32_t at_;
  float q_ = 0;
  float v_ = 0;
  T key_ = {};
  float keys_before_ = 0;
  T keys_[kAheadSteps];  // of the token j before, from j = 1 on
  float sums_[kAheadSteps] = {};
};

// Half of the block's threads load the taps, half the kernel: four values each.
__device__ inline void LoadConstants(const H3View& h3, AheadShared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int part = thread % (kAheadThreads / 2);
  const int local = part / 4;
  const int first = part % 4 * 4;
  const bool is_tap = thread < kAheadThreads / 2;
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kAheadChannels + local;
  if (channel >= h3.d_model) return;
  const float* from = is_tap ? h3.fir + channel * kAheadTaps : h3.kernel + channel * kAheadSteps;
  const Four<float> values = LoadFour(from + first);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    (is_tap ? shared.taps : shared.kernel)[first + i][local] = values.values[i];
}

template <typename T>
__device__ AheadRow LoadRow(const H3Operands<T>& x, void* ahead, int32_t index, int32_t rows) {
  if (index >= rows || x.slots[index] < 0) return {-1, 0, 0};
  const AheadSlot<T> slot(ahead, x.slots[index], x.constants.d_model);
  return {x.slots[index], x.positions[index], slot.bases[blockIdx.x]};
}

// Starts the blocks of tokens of all rows that do. All threads of the block.
template <typename T>
__device__ void StartBlocks(const H3Operands<T>& x, void* ahead, AheadShared& shared) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  bool any = false;
  for (const AheadRow& row : shared.rows) any = any || row.starts();
  if (!any) return;
  for (int pair = warp; pair < kAheadPairs; pair += kAheadSequences) {
    ChannelPair<T> channels(x, ahead, static_cast<int32_t>(blockIdx.x) * kAheadChannels + 2 * pair);
    channels.Prepare(shared.pairs[warp]);
    for (const AheadRow& row : shared.rows) {
      if (row.starts()) channels.Start(row.slot, row.position, row.pending());
    }
  }
}

// Grid: (AheadGroups(d), groups of kAheadSequences rows).
template <typename T>
__global__ void __launch_bounds__(kAheadThreads, 2)
    LookaheadKernel(const H3Operands<T> x, void* ahead, int32_t rows) {
  AheadShared& shared = *reinterpret_cast<AheadShared*>(SharedMemory());
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int32_t index = static_cast<int32_t>(blockIdx.y) * kAheadSequences + warp;
  const AheadRow row = LoadRow(x, ahead, index, rows);
  AheadLane<T> lane(x, ahead, row, index);
  lane.Load();
  LoadConstants(x.constants, shared);
  if (threadIdx.x % kWarp == 0) shared.rows[warp] = row;
  __syncthreads();
  StartBlocks(x, ahead, shared);
  __syncthreads();
  if (row.slot >= 0) {
    lane.Run(shared);
  } else if (index < rows) {
    lane.Clear();
  }
}

// Grid: (AheadGroups(d), parts). See H3Settle(); x.qkv and x.o are not used.
template <typename T>
__global__ void __launch_bounds__(kAheadThreads)
    SettleKernel(const H3Operands<T> x, void* ahead, const SequencePart* parts) {
  const auto [slot, row, tokens, start] = parts[blockIdx.y];
  if (slot < 0) return;
  int32_t& base = AheadSlot<T>(ahead, slot, x.constants.d_model).bases[blockIdx.x];
  const int32_t pending = start == 0 ? 0 : PendingTokens(base, start);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int pair = warp; pending > 0 && pair < kAheadPairs; pair += kAheadSequences) {
    const ChannelPair<T> channels(x, ahead,
                                  static_cast<int32_t>(blockIdx.x) * kAheadChannels + 2 * pair);
    channels.Absorb(slot, start, pending);
  }
  __syncthreads();
  if (threadIdx.x == 0) base = start + tokens;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_LOOKAHEAD_CUH_
