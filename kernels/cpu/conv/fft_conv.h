// Causal convolutions of many channels with one long kernel each.
#ifndef HIPPODROME_KERNELS_CPU_CONV_FFT_CONV_H_
#define HIPPODROME_KERNELS_CPU_CONV_FFT_CONV_H_

#include <memory>
#include <span>

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/fft_plan.h"
#include "kernels/cpu/conv/time_series.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// y[t, c] = sum_{s <= t} k_c[s] x[t - s, c] for the kTileChannels channels c of a tile and
// t < plan.length(). Rows of x and y are x_stride and y_stride floats apart.
// spectrum: [length, re | im, kTileChannels] of FftPlan::Spectrum; work: plan.work_floats().
// Error <= c u log2(length) |k_c|_2 |x_c|_2. x and y may be the same.
void ConvolveTile(const FftPlan& plan, const float* spectrum, const float* x, int64_t x_stride,
                  float* y, int64_t y_stride, float* work);

// The same for tiles of channels that share a kernel, x.width a multiple of kTileChannels, and for
// x.tokens <= plan.length(). spectrum: [length, re | im]; work: plan.work_floats() for each tile.
void ConvolveTiles(const FftPlan& plan, const float* spectrum, const TimeSeries& x,
                   const TimeSeries& y, float* work);

// The spectrum, in working order and not scaled, of 16 channels. x: [plan.length(), kTileChannels];
// work: plan.work_floats(). Dividing x by plan.length() beforehand makes it a kernel's spectrum.
void TransformTile(const FftPlan& plan, const float* x, float* spectrum, float* work);

// Kernels of C channels, kept as spectra.
class LongConv {
 public:
  // kernels: [channels, length].
  LongConv(std::span<const double> kernels, int64_t channels, int64_t length);

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
