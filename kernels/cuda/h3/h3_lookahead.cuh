// The kernels of the blocked look-ahead; h3_lookahead.h says what it is.
//
// A block takes kAheadChannels channels of one sequence per warp, a lane for a channel. Where a
// sequence starts a block of tokens, all warps of the block share the work: that takes 16 times the
// lanes.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_LOOKAHEAD_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_LOOKAHEAD_CUH_

#include "kernels/cuda/base/mma.cuh"
#include "kernels/cuda/h3/h3_operands.cuh"

namespace hippodrome::cuda {

// The row of a block that a token has. Of positions from 0 on, which the compiler does not know.
__device__ inline int32_t RowInBlock(int32_t position) { return position & (kAheadSteps - 1); }

// The work at the start of a block of the look-ahead (h3_lookahead.h), on two channels by a warp.
// 16 lanes take a channel: as modes, a lane holds two; as time, it stands for one token.

inline constexpr int kPairLanes = kWarp / 2;
static_assert(kPairLanes == kAheadSteps && 4 * kPairLanes == kAheadTaps);

// What a lane knows of sums over its channel, in one register per value, becomes the sum of one
// value: that of its own number. kWidth: half of the values that are left.
template <int kWidth = kPairLanes / 2>
__device__ inline float TransposeAndSum(float (&values)[kPairLanes]) {
  const bool upper = (threadIdx.x & kWidth) != 0;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float kept = upper ? values[i + kWidth] : values[i];
    const float given = upper ? values[i] : values[i + kWidth];
    values[i] = kept + __shfl_xor_sync(kAllLanes, given, kWidth);
  }
  if constexpr (kWidth == 1) {
    return values[0];
  } else {
    return TransposeAndSum<kWidth / 2>(values);
  }
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
    const int32_t row = RowInBlock(position) + lane_;
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
    const int64_t at = Row(RowInBlock(position - pending + lane_));
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
    const auto take = [&](int i) {
      const float kv = __shfl_sync(kAllLanes, tokens.kv, first_lane + i);
      const float2 first = ComplexMultiplyAdd({a_.x, a_.y}, {modes.x, modes.y}, {kv, 0.0f});
      const float2 second = ComplexMultiplyAdd({a_.z, a_.w}, {modes.z, modes.w}, {kv, 0.0f});
      modes = make_float4(first.x, first.y, second.x, second.y);
    };
    if (pending == kAheadSteps) {
#pragma unroll
      for (int i = 0; i < kAheadSteps; ++i) take(i);
    } else {
#pragma unroll 1
      for (int i = 0; i < pending; ++i) take(i);
    }
    if (active_ && pending > 0) {
      reinterpret_cast<float4*>(x_.state.modes)[StateOffset(slot)] = modes;
    }
    __syncwarp();  // Other lanes may have been reading the ring.
    if (active_ && lane_ < pending) {
      T* ring = x_.state.rings +
                (static_cast<int64_t>(slot) * x_.constants.d_model + channel_) * kAheadTaps;
      ring[(position - pending + lane_) & (kAheadTaps - 1)] = tokens.key;
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
    for (int i = 0; i < kAheadSteps; ++i) {
      first = ComplexMultiply({a_.x, a_.y}, first);
      second = ComplexMultiply({a_.z, a_.w}, second);
      values[i] = first.x + second.x;
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
inline constexpr int kAheadBlocks = 4;  // of a multiprocessor, by registers
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
    return slot >= 0 && (position == base || RowInBlock(position) == 0);
  }
};

// What a row of a step keeps of the tokens before its own in the block: in shared memory, for in
// registers it would take those of a third of the warps.
template <typename T>
struct PendingTile {
  alignas(16) float sums[kAheadSteps][kAheadChannels];
  alignas(16) T keys[kAheadSteps][kAheadChannels];
};

template <typename T>
struct AheadShared {
  AheadRow rows[kAheadSequences];
  // The first taps of the channels and their kernels; a channel's values in one bank.
  float taps[kAheadSteps][kAheadChannels + 1];
  float kernel[kAheadSteps][kAheadChannels + 1];
  alignas(16) PairScratch pairs[kAheadSequences][2];
  PendingTile<T> pending[kAheadSequences];
};

// Starts to copy the first `rows` rows of a block of channels from `first` on. All lanes of a warp.
template <typename V>
__device__ inline void CopyRowsAsync(const V* from, int32_t channels, int32_t first, int32_t rows,
                                     V (*to)[kAheadChannels]) {
  constexpr int kTogether = 16 / sizeof(V);
  constexpr int kParts = kAheadChannels / kTogether;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (channels % kTogether == 0) {
    const int part = lane % kParts * kTogether;
    const bool valid = first + part < channels;
    for (int row = lane / kParts; row < rows; row += kWarp / kParts) {
      CopyAsync16(&to[row][part], from + int64_t{row} * channels + first + part, valid);
    }
  } else if (first + lane < channels) {
    for (int row = 0; row < rows; ++row) {
      to[row][lane] = from[int64_t{row} * channels + first + lane];
    }
  }
}

// One lane: a channel of the warp's row. Between its two calls it keeps what it must: registers
// are what bounds the blocks of a multiprocessor.
template <typename T>
class AheadLane {
 public:
  __device__ AheadLane(const H3Operands<T>& x, void* ahead) : x_(x), ahead_(ahead) {}

  // Starts to load all that Run() needs: before anything else waits for memory. Rows before this
  // token's that are not of its block count for nothing later, but knowing would mean waiting for
  // the base.
  __device__ void Load(const AheadRow& row, int32_t index, PendingTile<T>& tile) {
    if (row.slot >= 0) {
      const AheadSlot<T> from = Slot(row);
      const int32_t rows = RowInBlock(row.position);
      CopyRowsAsync(from.sums, x_.constants.d_model, FirstChannel(), rows, tile.sums);
      CopyRowsAsync(from.keys, x_.constants.d_model, FirstChannel(), rows, tile.keys);
    }
    CommitCopies();
    if (!Active(row)) return;
    LoadAhead(row);
    const T* q = x_.qkv + index * x_.qkv_stride + Channel();
    q_ = q[0];
    key_ = q[x_.constants.d_model];
    v_ = q[2 * x_.constants.d_model];
  }

  // After a barrier behind the copies.
  __device__ void Run(const AheadRow& row, int32_t index, const AheadShared<T>& shared,
                      const PendingTile<T>& tile) {
    if (!Active(row)) return;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const bool starts = row.starts();
    if (starts) LoadAhead(row);  // It has just been written.
    const int32_t pending = starts ? 0 : row.pending();
    const int32_t at = RowInBlock(row.position);
    float ks = fmaf(shared.taps[0][lane], Widen(key_), keys_before_);
    float y = sum_;
    for (int32_t j = 1; j <= pending; ++j) {
      ks = fmaf(shared.taps[j][lane], Widen(tile.keys[at - j][lane]), ks);
      y = fmaf(shared.kernel[j][lane], tile.sums[at - j][lane], y);
    }
    const float kv = ks * Widen(v_);
    const AheadSlot<T> to = Slot(row);
    to.keys[Offset(row)] = key_;
    to.sums[Offset(row)] = kv;
    Output(index, Widen(q_) * fmaf(shared.kernel[0][lane], kv, y));
  }

  __device__ void Clear(int32_t index) const {
    if (Channel() < x_.constants.d_model) Output(index, 0.0f);
  }

 private:
  __device__ static int32_t FirstChannel() {
    return static_cast<int32_t>(blockIdx.x) * kAheadChannels;
  }
  __device__ static int32_t Channel() {
    return FirstChannel() + static_cast<int32_t>(threadIdx.x) % kWarp;
  }
  __device__ bool Active(const AheadRow& row) const {
    return row.slot >= 0 && Channel() < x_.constants.d_model;
  }
  __device__ AheadSlot<T> Slot(const AheadRow& row) const {
    return {ahead_, row.slot, x_.constants.d_model};
  }
  // Of the token in each matrix of its slot.
  __device__ int64_t Offset(const AheadRow& row) const {
    return int64_t{RowInBlock(row.position)} * x_.constants.d_model + Channel();
  }
  // What the block's past gives the token.
  __device__ void LoadAhead(const AheadRow& row) {
    keys_before_ = Slot(row).keys_before[Offset(row)];
    sum_ = Slot(row).sums[Offset(row)];
  }
  __device__ void Output(int32_t index, float o) const {
    x_.o[index * x_.o_stride + Channel()] = FromFloat<T>(o);
  }

  const H3Operands<T>& x_;
  void* ahead_;
  T q_ = {};
  T v_ = {};
  T key_ = {};
  float keys_before_ = 0;
  float sum_ = 0;
};

// Half of the block's threads load the taps, half the kernel: four values each.
template <typename T>
__device__ inline void LoadConstants(const H3View& h3, AheadShared<T>& shared) {
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
__device__ void StartBlocks(const H3Operands<T>& x, void* ahead, AheadShared<T>& shared) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const bool starts = lane < kAheadSequences && shared.rows[lane].starts();
  const unsigned starting = __ballot_sync(kAllLanes, starts ? 1 : 0);
  if (starting == 0) return;
  for (int pair = warp; pair < kAheadPairs; pair += kAheadSequences) {
    ChannelPair<T> channels(x, ahead, static_cast<int32_t>(blockIdx.x) * kAheadChannels + 2 * pair);
    channels.Prepare(shared.pairs[warp]);
    for (unsigned left = starting; left != 0; left &= left - 1) {
      const AheadRow row = shared.rows[__ffs(static_cast<int>(left)) - 1];
      channels.Start(row.slot, row.position, row.pending());
    }
  }
}

// Grid: (AheadGroups(d), groups of kAheadSequences rows).
template <typename T>
__global__ void __launch_bounds__(kAheadThreads, kAheadBlocks)
    LookaheadKernel(const H3Operands<T> x, void* ahead, int32_t rows, const ReadAhead weights) {
  BeginDependent();
  AheadShared<T>& shared = *reinterpret_cast<AheadShared<T>*>(SharedMemory());
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int32_t index = static_cast<int32_t>(blockIdx.y) * kAheadSequences + warp;
  AheadLane<T> lane(x, ahead);
  {
    // A row beyond the last has slot -1.
    const AheadRow row = LoadRow(x, ahead, index, rows);
    lane.Load(row, index, shared.pending[warp]);
    LoadConstants(x.constants, shared);
    if (threadIdx.x % kWarp == 0) shared.rows[warp] = row;
  }
  __syncthreads();
  StartBlocks(x, ahead, shared);
  PrefetchShare(weights);  // behind the loads of states
  WaitForCopies<0>();
  __syncthreads();
  const AheadRow row = shared.rows[warp];
  if (row.slot >= 0) {
    lane.Run(row, index, shared, shared.pending[warp]);
  } else if (index < rows) {
    lane.Clear(index);
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
