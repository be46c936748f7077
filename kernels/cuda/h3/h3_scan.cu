// The blocked scan: one launch for all tokens of all parts. A block of threads owns the
// channels of one sector and goes through its parts, stretch by stretch; each warp keeps the
// matrices of one channel in registers.
#include "kernels/cuda/h3/h3_scan.cuh"

#include <cassert>
#include <cstddef>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/sequence_parts.h"
#include "kernels/cuda/h3/h3_prefill.h"
#include "kernels/cuda/h3/scan_splits.h"

namespace hippodrome::cuda {
namespace {

// Rows q < 16: dA^q of every mode; then w dA. Zeros for padding modes. Lanes read different rows
// together, which the column more puts in different banks.
using ScanTable = float2[kScanSteps + 1][kMaxModes + 1];

// The powers of lane = mode.
template <typename T>
__device__ inline void MakePowers(const H3View& layer, int channel, ScanTable& table,
                                  float4 (&powers)[kMaxModes][2]) {
  const int lane = threadIdx.x % kWarp;
  const bool real = channel < layer.d_model && lane < layer.modes;
  const int64_t mode = int64_t{channel} * layer.modes + lane;
  const float2 a = real ? layer.a[mode] : make_float2(0, 0);
  const float2 w = real ? layer.w[mode] : make_float2(0, 0);
  // In double: errors of high powers would add up over all blocks.
  double re = real ? 1 : 0;
  double im = 0;
  const auto multiply = [&](double by_re, double by_im) {
    const double product = re * by_re - im * by_im;
    im = re * by_im + im * by_re;
    re = product;
  };
  const auto power = [&] { return make_float2(static_cast<float>(re), static_cast<float>(im)); };
  for (int q = 0; q < kScanSteps; ++q) {
    table[q][lane] = power();
    multiply(double{a.x}, double{a.y});
  }
  table[kScanSteps][lane] = ComplexMultiply(w, a);
  const float2 a16 = power();
  multiply(re, im);
  multiply(re, im);
  const float2 a64 = power();
  multiply(re, im);
  const float2 a128 = power();
  multiply(re, im);
  const float2 a256 = power();
  powers[lane][0] = make_float4(a16.x, a16.y, a64.x, a64.y);
  powers[lane][1] = make_float4(a128.x, a128.y, a256.x, a256.y);
}

// taps l and l - 1 for l = -16 .. 79.
template <typename T>
__device__ inline void MakeTaps(const H3View& layer, int channel,
                                typename ScanShared<T>::TapPair (&taps)[kTapWords]) {
  const auto tap = [&](int l) {
    const bool real = channel < layer.d_model && l >= 0 && l < layer.taps;
    return real ? layer.fir[int64_t{channel} * layer.taps + l] : 0.0f;
  };
  for (int i = threadIdx.x % kWarp; i < kTapWords; i += kWarp) {
    SplitBF16(tap(i - 16), tap(i - 17), taps[TapAt(i)].terms);
  }
}

template <typename T>
__device__ inline void MakeOperands(const H3View& layer, int channel, const ScanTable& table,
                                    ScanOperands<T>& operands) {
  const int lane = threadIdx.x % kWarp;
  const int g = lane / 4;
  const int t = lane % 4;
  const auto kernel = [&](int l) {
    const bool real = channel < layer.d_model && l >= 0 && l < kScanSteps;
    return real ? layer.kernel[int64_t{channel} * kScanSteps + l] : 0.0f;
  };
  const float2 weight = table[kScanSteps][lane];
  operands.scale =
      StateScale<T>(WarpMax(fmaxf(fmaxf(fabsf(weight.x), fabsf(weight.y)), fabsf(kernel(lane)))));
#pragma unroll
  for (int i = 0; i < kStateTiles; ++i) {
    const auto value = [&](int q) {
      const float2 power = table[kScanSteps - 1 - q][4 * i + g / 2];
      return g % 2 == 0 ? power.x : power.y;
    };
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint32_t terms[ScanTerms<T>::kStates];
      SplitState(value(4 * t + 2 * h), value(4 * t + 2 * h + 1), terms);
#pragma unroll
      for (int term = 0; term < ScanTerms<T>::kStates; ++term) {
        operands.in[i][term][h] = terms[term];
      }
      const int mode = 4 * i + t;
      const int q = g / 2 * 4 + g % 2 + 2 * h;
      const float2 c = ComplexMultiply(table[kScanSteps][mode], table[q][mode]);
      SplitState(c.x * operands.scale, -c.y * operands.scale, terms);
#pragma unroll
      for (int term = 0; term < ScanTerms<T>::kStates; ++term) {
        operands.out[i / 2][h][term][i % 2] = terms[term];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const int l = ToeplitzOffset() + 2 * (i - 1);
    SplitState(kernel(l) * operands.scale, kernel(l - 1) * operands.scale, operands.direct[i]);
  }
}

// The channels of a block, as all its threads see them: brings stretches of q, k, v and o between
// device memory, where a row is a token, and shared memory, where a row is a channel.
template <typename T>
class ScanStage {
 public:
  static constexpr int kChannels = ScanShared<T>::kChannels;
  static constexpr int kThreads = ScanShared<T>::kThreads;

  __device__ ScanStage(const ScanArguments<T>& p, ScanShared<T>& shared)
      : p_(p),
        shared_(shared),
        first_(static_cast<int>(blockIdx.x) * kChannels),
        vectors_(sizeof(T) == 2 && p.aligned && first_ + kChannels <= p.layer.d_model) {}

  // Starts to copy a stretch, if there is one; WaitForCopies() ends it.
  __device__ void Prefetch(ScanCursor at) {
    if (vectors_ && at.part < p_.part_count) {
      const int tokens = TokensOf(p_, at);
      const T* from = Input(at);
      for (int i = threadIdx.x; i < 3 * kStretch * 2; i += kThreads) {
        const int part = i / (kStretch * 2);
        const int token = i / 2 % kStretch;
        const int half = i % 2;
        const bool valid = token < tokens;
        CopyAsync16(&shared_.next[part][token][half ^ (token >> 2 & 1)],
                    valid
                        ? from + token * p_.qkv_stride + int64_t{part} * p_.layer.d_model + half * 8
                        : from,
                    valid);
      }
    }
    CommitCopies();
  }

  // Puts the stretch, which was prefetched, into the rows of its channels, zeros after its end.
  __device__ void Load(ScanCursor at) {
    if constexpr (sizeof(T) == 2) {
      if (vectors_) return Transpose();
    }
    const int tokens = TokensOf(p_, at);
    const T* from = Input(at);
    for (int i = threadIdx.x; i < 3 * kStretch * kChannels; i += kThreads) {
      const int part = i / (kStretch * kChannels);
      const int token = i / kChannels % kStretch;
      const int channel = i % kChannels;
      const bool valid = token < tokens && first_ + channel < p_.layer.d_model;
      *At(part, channel, token) =
          valid ? from[token * p_.qkv_stride + int64_t{part} * p_.layer.d_model + channel] : T{};
    }
  }

  // Writes the outputs, which have taken the place of q.
  __device__ void Store(ScanCursor at) {
    const int tokens = TokensOf(p_, at);
    T* to = p_.o + RowOf(p_, at) * p_.o_stride + first_;
    if constexpr (sizeof(T) == 2) {
      if (vectors_) return StoreVectors(tokens, to);
    }
    for (int i = threadIdx.x; i < tokens * kChannels; i += kThreads) {
      const int token = i / kChannels;
      const int channel = i % kChannels;
      if (first_ + channel < p_.layer.d_model) {
        to[token * p_.o_stride + channel] = *At(0, channel, token);
      }
    }
  }

 private:
  // q of the first token and channel.
  __device__ const T* Input(ScanCursor at) const {
    return p_.qkv + RowOf(p_, at) * p_.qkv_stride + first_;
  }
  __device__ T* At(int part, int channel, int token) const {
    return part == 0   ? shared_.q[channel] + RowAt(token)
           : part == 1 ? shared_.k[channel] + RowAt(kHistory + token)
                       : shared_.v[channel] + RowAt(token);
  }

  // Four matrices of 8 tokens and 8 channels at a time.
  __device__ void Transpose() {
    const int lane = threadIdx.x % kWarp;
    for (int i = threadIdx.x / kWarp; i < 3 * kStretch / kWarp * 2; i += kChannels) {
      const int part = i / (kStretch / kWarp * 2);
      const int token = i / 2 % (kStretch / kWarp) * kWarp;
      const int half = i % 2;
      uint32_t pairs[4];
      LoadMatricesTransposed(pairs, &shared_.next[part][token + lane][half ^ (lane >> 2 & 1)]);
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        T* to = At(part, half * 8 + lane / 4, token + m * 8 + lane % 4 * 2);
        *reinterpret_cast<uint32_t*>(to) = pairs[m];
      }
    }
  }

  // Two tokens of eight channels by each thread.
  __device__ void StoreVectors(int tokens, T* to) {
    for (int i = threadIdx.x; i < kStretch; i += kThreads) {
      const int token = i / 2 * 2;
      const int half = i % 2;
      uint32_t even[4];
      uint32_t odd[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const auto pair = [&](int channel) {
          return *reinterpret_cast<const uint32_t*>(At(0, half * 8 + channel, token));
        };
        const uint32_t low = pair(2 * c);
        const uint32_t high = pair(2 * c + 1);
        even[c] = (low & 0xffffu) | high << 16;
        odd[c] = low >> 16 | (high & 0xffff0000u);
      }
      T* row = to + token * p_.o_stride + half * 8;
      if (token < tokens)
        *reinterpret_cast<uint4*>(row) = make_uint4(even[0], even[1], even[2], even[3]);
      if (token + 1 < tokens) {
        *reinterpret_cast<uint4*>(row + p_.o_stride) = make_uint4(odd[0], odd[1], odd[2], odd[3]);
      }
    }
  }

  const ScanArguments<T>& p_;
  ScanShared<T>& shared_;
  const int first_;     // channel
  const bool vectors_;  // whole sectors of 16 channels
};

// The state of a slot's channel in device memory, and in the shared memory of its warp. The ring's
// column of a position is that position mod N.
template <typename T>
__device__ inline void LoadState(const ScanArguments<T>& p, int64_t channel, int row,
                                 ScanShared<T>& shared) {
  const int lane = threadIdx.x % kWarp;
  const int taps = p.layer.taps;
  const int modes = p.layer.modes;
  const SequencePart& part = shared.part;
  const int64_t state_row = int64_t{part.slot} * p.layer.d_model + channel;
  for (int ago = 1 + lane; ago <= kHistory; ago += kWarp) {
    const bool known = part.start > 0 && ago <= taps;
    const int64_t column = (part.start - ago + int64_t{taps} * kHistory) % taps;
    shared.k[row][RowAt(kHistory - ago)] =
        known ? p.state.rings[state_row * taps + column] : FromFloat<T>(0);
  }
  shared.carry[row][lane] =
      part.start > 0 && lane < modes ? p.state.modes[state_row * modes + lane] : make_float2(0, 0);
  __syncwarp();
}

// `tokens`: of the last stretch.
template <typename T>
__device__ inline void StoreState(const ScanArguments<T>& p, int64_t channel, int row, int tokens,
                                  const ScanShared<T>& shared) {
  const int lane = threadIdx.x % kWarp;
  const int taps = p.layer.taps;
  const int modes = p.layer.modes;
  const SequencePart& part = shared.part;
  const int64_t state_row = int64_t{part.slot} * p.layer.d_model + channel;
  for (int ago = 1 + lane; ago <= taps; ago += kWarp) {
    const int64_t column = (int64_t{part.start} + part.tokens - ago + taps) % taps;
    p.state.rings[state_row * taps + column] = shared.k[row][RowAt(kHistory + tokens - ago)];
  }
  if (lane < modes) p.state.modes[state_row * modes + lane] = shared.carry[row][lane];
}

// The last inputs become the history of the next stretch.
template <typename T>
__device__ inline void KeepHistory(T* k) {
  for (int i = threadIdx.x % kWarp; i < kHistory; i += kWarp) k[RowAt(i)] = k[RowAt(kStretch + i)];
}

template <typename T>
__device__ inline void ScanChannel(const ScanArguments<T>& p, int64_t channel, int row,
                                   const ScanOperands<T>& operands, ScanShared<T>& shared,
                                   int token) {
  const int tokens = min(shared.part.tokens - token, kStretch);
  if (token == 0) LoadState(p, channel, row, shared);
  ChannelScan<T> scan(shared, row, operands);
  scan.Run(tokens);
  if (token + tokens < shared.part.tokens) return KeepHistory(shared.k[row]);
  const int lane = threadIdx.x % kWarp;
  if (tokens % kScanSteps != 0) {
    scan.Finish(tokens % kScanSteps, lane < p.layer.modes
                                         ? p.layer.a[channel * p.layer.modes + lane]
                                         : make_float2(0, 0));
  }
  StoreState(p, channel, row, tokens, shared);
}

// grid: (groups of channels, at most the parts); threads: ScanShared<T>::kThreads.
template <typename T>
__global__ void __launch_bounds__(ScanShared<T>::kThreads, 1)
    H3ScanKernel(const ScanArguments<T> p) {
  auto& shared = *reinterpret_cast<ScanShared<T>*>(SharedMemory());
  const int row = threadIdx.x / kWarp;
  const int channel = static_cast<int>(blockIdx.x) * ScanShared<T>::kChannels + row;

  ScanOperands<T> operands;
  // In the place of the stretches, which come later.
  auto* tables = reinterpret_cast<ScanTable*>(&shared);
  static_assert(sizeof(ScanTable) * ScanShared<T>::kChannels <= offsetof(ScanShared<T>, powers));
  MakePowers<T>(p.layer, channel, tables[row], shared.powers[row]);
  MakeTaps<T>(p.layer, channel, shared.taps[row]);
  __syncwarp();
  MakeOperands<T>(p.layer, channel, tables[row], operands);
  __syncthreads();

  ScanStage<T> stage(p, shared);
  ScanCursor at = FirstStretch(p, static_cast<int32_t>(blockIdx.y));
  stage.Prefetch(at);
  // The next stretch is found twice, which spares registers in between.
  for (; at.part < p.part_count; at = NextStretch(p, at)) {
    WaitForCopies<0>();
    __syncthreads();
    stage.Load(at);
    if (threadIdx.x == 0) shared.part = p.parts[at.part];
    __syncthreads();
    stage.Prefetch(NextStretch(p, at));
    if (channel < p.layer.d_model) ScanChannel(p, channel, row, operands, shared, at.token);
    __syncthreads();
    at.part = Forget(at.part);  // Where it lies must not stay in registers all the while.
    stage.Store(at);
  }
}

template <typename T>
void Scan(Device& device, const H3SequenceCall& call) {
  const ScanArguments<T> arguments = {
      .layer = call.constants.view(),
      .state = call.state.view<T>(),
      .qkv = static_cast<const T*>(call.qkv.data),
      .qkv_stride = call.qkv.stride,
      .o = static_cast<T*>(call.o.data),
      .o_stride = call.o.stride,
      .parts = CopyParts(device, call.parts),
      .part_count = static_cast<int32_t>(call.parts.size()),
      .aligned = RowsAreAligned(call.qkv, 8) && RowsAreAligned(call.o, 8)};
  constexpr int64_t kChannels = ScanShared<T>::kChannels;
  const int64_t groups = (arguments.layer.d_model + kChannels - 1) / kChannels;
  const int64_t splits = ScanSplits(call.parts, groups, device.multiprocessors());
  Launch(device, "h3_scan", H3ScanKernel<T>,
         {.blocks = dim3(static_cast<unsigned>(groups), static_cast<unsigned>(splits)),
          .threads = dim3(ScanShared<T>::kThreads),
          .shared_bytes = sizeof(ScanShared<T>)},
         arguments);
}

}  // namespace

bool CanScan(const H3PrefillWeights& constants, size_t shared_bytes) {
  const size_t needed = constants.activations() == DType::kBF16 ? sizeof(ScanShared<BF16>)
                                                                : sizeof(ScanShared<float>);
  return constants.view().head_dim == 1 && constants.view().taps <= kHistory &&
         needed <= shared_bytes;
}

void H3Scan(Device& device, const H3SequenceCall& call) {
  assert(CanScan(call.constants, device.shared_bytes()));
  assert(call.qkv.cols == 3 * int64_t{call.constants.view().d_model});
  if (call.constants.activations() == DType::kBF16) {
    Scan<BF16>(device, call);
  } else {
    Scan<float>(device, call);
  }
}

}  // namespace hippodrome::cuda
