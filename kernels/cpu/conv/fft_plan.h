// The constants of a causal convolution by the "right-angle" transform.
//
// For real x and k of length L and w = exp(i pi / (2 L)), the cyclic convolution of x_t w^t and
// k_t w^t wraps around with the factor w^L = i. Divided by w^t, its real part is therefore the
// first half of the linear convolution of x and k, and its imaginary part the second half: a causal
// convolution takes complex transforms of length L, no zero padding and no pairing of mirrored
// frequencies. The spectrum is kept in the order in which a decimation in frequency leaves it, so
// that nothing is ever reordered.
#ifndef HIPPODROME_KERNELS_CPU_CONV_FFT_PLAN_H_
#define HIPPODROME_KERNELS_CPU_CONV_FFT_PLAN_H_

#include <complex>
#include <cstdint>
#include <vector>

namespace hippodrome::cpu {

inline constexpr int64_t kTileChannels = 16;  // channels side by side, one per vector lane

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

// Writes a spectrum as lane `lane` of a tile [length, re | im, kTileChannels] of f32.
void StoreSpectrum(const std::vector<std::complex<double>>& spectrum, int64_t lane, float* tile);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_FFT_PLAN_H_
