// Causal convolutions by the "right-angle" transform: its constants, and its work on tiles.
//
// For real x and k of length L and w = exp(i pi / (2 L)), the cyclic convolution of x_t w^t and
// k_t w^t wraps around with the factor w^L = i. Divided by w^t, its real part is therefore the
// first half of the linear convolution of x and k, and its imaginary part the second half: a causal
// convolution takes complex transforms of length L, no zero padding and no pairing of mirrored
// frequencies. The spectrum is kept in the order in which a decimation in frequency leaves it, so
// that nothing is ever reordered.
#ifndef HIPPODROME_KERNELS_CPU_CONV_FFT_H_
#define HIPPODROME_KERNELS_CPU_CONV_FFT_H_

#include <complex>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/cpu/conv/tile.h"

namespace hippodrome::cpu {

// One decimation in frequency: `radix` blocks of length / radix points each out of one.
struct FftStage {
  int64_t length = 0;
  int radix = 0;
  // Factor of output k at point j, as (re, im): [length / radix, kFirst, 2] where the first stage
  // has all `radix` factors (they carry w^j) and the others leave out k = 0.
  std::vector<float> twiddles;
};

class FftPlan {
 public:
  // The shortest supported transform (a power of two) that holds `points` points.
  static int64_t LengthFor(int64_t points);

  // REQUIRES: length == LengthFor(length).
  explicit FftPlan(int64_t length);

  int64_t length() const { return length_; }
  // The first has radix 8, the last is the radix 8 of eight neighbours, which needs no twiddles.
  const std::vector<FftStage>& stages() const { return stages_; }
  // Floats between the eight blocks of the first stage in a tile. One more point than they need:
  // blocks a power of two apart would share a few sets of the caches.
  int64_t block_stride() const { return (length_ / 8 + 1) * 2 * kTileChannels; }
  // Floats of working memory of a convolution.
  int64_t work_floats() const { return 8 * block_stride(); }

  // The spectrum of kernel[0, points), points <= length(), divided by length(), in working order.
  void Spectrum(const double* kernel, int64_t points, std::complex<double>* spectrum) const;

 private:
  int64_t length_;
  std::vector<FftStage> stages_;
  std::vector<int64_t> order_;               // position in working order -> frequency
  std::vector<std::complex<double>> roots_;  // exp(-2 pi i j / (4 length)), j < 4 length
};

// The plans of all transform lengths in use, which all layers share. Not safe for concurrent use.
class FftPlans {
 public:
  // The plan of length FftPlan::LengthFor(points), made at its first use, valid while this lives.
  const FftPlan& For(int64_t points) {
    const int64_t length = FftPlan::LengthFor(points);
    return plans_.try_emplace(length, length).first->second;
  }

 private:
  std::map<int64_t, FftPlan> plans_;
};

// Writes a spectrum as lane `lane` of a tile [length, re | im, kTileChannels] of f32.
void StoreSpectrum(const std::vector<std::complex<double>>& spectrum, int64_t lane, float* tile);

// Convolutions and transforms of tiles. Series have kTileChannels channels and T <= plan.length()
// tokens, unless said otherwise, and may lie anywhere; spectra are [plan.length(), re | im,
// kTileChannels] in working order; spectra and work, plan.work_floats() of it, are aligned to 64
// bytes. The error of channel c is at most c u log2(length) |k_c|_2 |x_c|_2.

// The spectrum, not scaled, of x. Dividing x by plan.length() beforehand makes it a kernel's
// spectrum.
void TransformTile(const FftPlan& plan, const TimeSeries& x, float* spectrum, float* work);

// y[t] = plan.length() times what has `spectrum`.
void InverseTile(const FftPlan& plan, const float* spectrum, const TimeSeries& y, float* work);

// y[t] = sum_{s <= t} k[s] x[t - s], and the spectrum of x in `kept`, unless that is null. k: a
// kernel's spectrum. x and y may be the same.
void ConvolveTile(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                  float* kept, float* work);

// The same for tiles of channels that share a kernel, x.width a multiple of kTileChannels.
// k: [plan.length(), re | im]; work: plan.work_floats() for each tile.
void ConvolveTiles(const FftPlan& plan, const float* k, const TimeSeries& x, const TimeSeries& y,
                   float* work);

// The gradient of ConvolveTile(): dx[t] = sum_{s >= t} k[s - t] dy[s], and to `sums` the spectrum
// of sum_t dy[t] x[t - l], which is the gradient of k[l]. x: as ConvolveTile() kept it. dx may be
// dy. Modulo z^L = i the terms that wrap around come out imaginary, and a conjugate spectrum, which
// is that of reversed time, gives them times -i: correlations need neither reversal nor a longer
// transform.
void CorrelateTile(const FftPlan& plan, const float* k, const float* x, const TimeSeries& dy,
                   const TimeSeries& dx, float* sums, float* work);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_FFT_H_
