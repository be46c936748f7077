// The blocked scan: one launch for all tokens of all sequences. A block of threads owns the
// channels of one sector and goes through its sequences, stretch by stretch; each warp keeps the
// matrices of one channel in registers.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CUH_

#include <cstddef>

#include "kernels/cuda/h3/h3_scan_stretch.cuh"

namespace hippodrome::cuda {

// The state of a slot's channel in device memory, and in the shared memory of its warp. The ring's
// column of a position is that position mod N.
template <typename T>
__device__ inline void LoadState(const ScanArguments<T>& p, int64_t channel, int row,
                                 ScanShared<T>& shared, ScanCursor at) {
  const int lane = threadIdx.x % kWarp;
  const int taps = p.layer.taps;
  const int modes = p.layer.modes;
  const int64_t state_row = int64_t{p.slots[at.sequence]} * p.layer.d_model + channel;
  for (int ago = 1 + lane; ago <= kHistory; ago += kWarp) {
    const bool known = p.start > 0 && ago <= taps;
    const int64_t column = (p.start - ago + int64_t{taps} * kHistory) % taps;
    shared.k[row][RowAt(kHistory - ago)] =
        known ? p.state.rings[state_row * taps + column] : FromFloat<T>(0);
  }
  shared.carry[row][lane] =
      p.start > 0 && lane < modes ? p.state.modes[state_row * modes + lane] : make_float2(0, 0);
  __syncwarp();
}

// `tokens`: of the last stretch.
template <typename T>
__device__ inline void StoreState(const ScanArguments<T>& p, int64_t channel, int row, int tokens,
                                  const ScanShared<T>& shared, ScanCursor at) {
  const int lane = threadIdx.x % kWarp;
  const int taps = p.layer.taps;
  const int modes = p.layer.modes;
  const int64_t state_row = int64_t{p.slots[at.sequence]} * p.layer.d_model + channel;
  for (int ago = 1 + lane; ago <= taps; ago += kWarp) {
    const int64_t column = (p.start + p.tokens - ago + taps) % taps;
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
                                   ScanCursor at) {
  const int tokens = TokensOf(p, at);
  if (at.token == 0) LoadState(p, channel, row, shared, at);
  ChannelScan<T> scan(shared, row, operands);
  scan.Run(tokens);
  if (at.token + tokens < p.tokens) return KeepHistory(shared.k[row]);
  const int lane = threadIdx.x % kWarp;
  if (tokens % kScanSteps != 0) {
    scan.Finish(tokens % kScanSteps, lane < p.layer.modes
                                         ? p.layer.a[channel * p.layer.modes + lane]
                                         : make_float2(0, 0));
  }
  StoreState(p, channel, row, tokens, shared, at);
}

// grid: (groups of channels, at most the sequences); threads: ScanShared<T>::kThreads.
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
  ScanCursor next = FirstStretch(p, static_cast<int32_t>(blockIdx.y));
  stage.Prefetch(next);
  while (next.sequence < p.sequences) {
    const ScanCursor at = next;
    next = NextStretch(p, at);
    WaitForCopies<0>();
    __syncthreads();
    stage.Load(at);
    __syncthreads();
    stage.Prefetch(next);
    if (channel < p.layer.d_model) ScanChannel(p, channel, row, operands, shared, at);
    __syncthreads();
    stage.Store(at);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_CUH_
