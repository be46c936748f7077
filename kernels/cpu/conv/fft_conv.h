// Causal convolutions of many channels with one long kernel each.
#ifndef HIPPODROME_KERNELS_CPU_CONV_FFT_CONV_H_
#define HIPPODROME_KERNELS_CPU_CONV_FFT_CONV_H_

#include <memory>
#include <span>

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/fft.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// Kernels of C channels, kept as spectra.
class FftConv {
 public:
  // kernels: [channels, length].
  FftConv(std::span<const double> kernels, int64_t channels, int64_t length);

  int64_t channels() const { return channels_; }
  int64_t length() const { return length_; }
  int64_t bytes() const;

  // y[t, c] = sum_{s <= t} k_c[s] x[t - s, c].  x, y: f32 [T, channels], T <= length; may be the
  // same.
  void Apply(ThreadPool& pool, Tensor x, Tensor y) const;

 private:
  void ApplyTile(int64_t tile, Tensor x, Tensor y) const;

  int64_t channels_;
  int64_t length_;
  FftPlan plan_;
  std::shared_ptr<void> spectra_;  // [tiles, plan length, re | im, kTileChannels] f32
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_FFT_CONV_H_
