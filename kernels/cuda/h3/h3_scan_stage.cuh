// Stretches of q, k, v and o between device memory, where a row is a token, and shared memory,
// where a row is a channel.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_STAGE_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_STAGE_CUH_

#include "kernels/cuda/h3/h3_scan_operands.cuh"
#include "kernels/cuda/h3/h3_state.h"

namespace hippodrome::cuda {

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
  const int32_t* slots;
  int32_t sequences;
  int32_t tokens;  // of each sequence
  bool aligned;    // rows of qkv and o, to 16 bytes
  int64_t start;
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
  } taps[kChannels][kTapWords];  // [16 + l]: taps l and l - 1
  float tail[kChannels][kScanSteps];
};

// Where the row of a channel holds token i. Tokens 64 apart, which lanes read together, are in
// different banks.
__device__ inline int RowAt(int i) { return i ^ (i >> 2 & 0x30); }

// A stretch of one sequence.
struct ScanCursor {
  int32_t sequence;
  int32_t token;
};
// The first one of the sequences sequence, sequence + gridDim.y, ... that are not inert.
template <typename T>
__device__ inline ScanCursor FirstStretch(const ScanArguments<T>& p, int32_t sequence) {
  while (sequence < p.sequences && p.slots[sequence] < 0) {
    sequence += static_cast<int32_t>(gridDim.y);
  }
  return {sequence, 0};
}
template <typename T>
__device__ inline ScanCursor NextStretch(const ScanArguments<T>& p, ScanCursor at) {
  if (at.token + kStretch < p.tokens) return {at.sequence, at.token + kStretch};
  return FirstStretch(p, at.sequence + static_cast<int32_t>(gridDim.y));
}
template <typename T>
__device__ inline int TokensOf(const ScanArguments<T>& p, ScanCursor at) {
  return min(p.tokens - at.token, kStretch);
}

// The channels of a block, as all its threads see them.
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
    if (vectors_ && at.sequence < p_.sequences) {
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
    T* to = p_.o + (int64_t{at.sequence} * p_.tokens + at.token) * p_.o_stride + first_;
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
    return p_.qkv + (int64_t{at.sequence} * p_.tokens + at.token) * p_.qkv_stride + first_;
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

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_STAGE_CUH_
