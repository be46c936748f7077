// What the block transforms of fft_block.cuh read: where they keep which frequency, and their
// twiddle factors.
//
// A transform of N = 2^k >= 16 points takes radix-16 passes until blocks of R <= 16 points are
// left, and ends with radix R. Nothing is reordered: position i of the result holds frequency
// FftFrequency(N, i), and thread t has positions [16 t, 16 t + 16).
#ifndef HIPPODROME_KERNELS_CUDA_CONV_FFT_TABLES_H_
#define HIPPODROME_KERNELS_CUDA_CONV_FFT_TABLES_H_

#include <complex>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace hippodrome::cuda {

inline constexpr int kFftValues = 16;                     // points per thread
inline constexpr int64_t kLongestBlockTransform = 16384;  // points

// The frequency at `position` of the result of `points` points.
constexpr int FftFrequency(int points, int position) {
  int frequency = 0;
  int scale = 1;
  for (; points > kFftValues; points /= kFftValues, scale *= kFftValues) {
    const int block = points / kFftValues;
    frequency += scale * (position / block);
    position %= block;
  }
  return frequency + scale * position;
}

// The position of frequency (points - f) mod points, where f is that of `position`.
constexpr int FftMirror(int points, int position) {
  for (; points > kFftValues; points /= kFftValues) {
    const int block = points / kFftValues;
    if (position >= block) return points + block - 1 - position;
  }
  return position == 0 ? 0 : points - position;
}

// Where `position` is in a spectrum in memory, in complex numbers: thread t reads so many of its
// positions together, [16 / together][t][together].
constexpr int FftSpectrumOffset(int points, int position, int together = 2) {
  const int part = position % kFftValues / together;
  return (part * (points / kFftValues) + position / kFftValues) * together + position % together;
}

// Pairs of numbers in the table of FftTwiddles(), for passes of the inverse transform and for all.
constexpr int FftInverseTwiddles(int points) {
  return points <= kFftValues ? 0 : points / kFftValues + FftInverseTwiddles(points / kFftValues);
}
constexpr int FftTwiddlePairs(int points) {
  int pairs = FftInverseTwiddles(points);
  for (int n = points / kFftValues; n > 1; n /= kFftValues) {
    pairs += n < kFftValues ? points / kFftValues : points / n;
  }
  return pairs;
}
// Complex numbers in it.
constexpr int FftTwiddleCount(int points) { return 2 * FftTwiddlePairs(points); }

// Pairs (w, w^4), with W_n = exp(-2 pi i / n). For the passes of the inverse transform over blocks
// of n = points, points / 16, ... points, n > 16: w = W_n^p for p < n / 16. Then for those of the
// forward one over k blocks of n = points / 16, ... points, n > 1: for each block w = W_16k^f,
// where f is the frequency of its first position; if n < 16, pairs (w, w^2) with w = W_points^f for
// the first block of each thread.
std::vector<std::complex<float>> FftTwiddles(int points);

// exp(i pi t / 2L) for t < L / 16, L = points: the weights of right_angle.cuh.
std::vector<std::complex<float>> RightAngleTurns(int points);

// Z_f = sum_t z_t exp(-2 pi i t f / size), in double and in natural order. REQUIRES: a power of
// two.
std::vector<std::complex<double>> DoubleTransform(std::span<const std::complex<double>> z);

// From a number of tokens, known at run time, to the transform that is compiled for it.

// use(std::integral_constant<int, points>()) with the shortest transform within a block, of
// kShortest points at least, that holds `tokens`. REQUIRES: tokens <= kLongestBlockTransform, or
// the longest is taken.
template <int kShortest, typename Use>
auto WithTransform(int64_t tokens, const Use& use) {
  if constexpr (kShortest < kLongestBlockTransform) {
    if (tokens > kShortest) return WithTransform<2 * kShortest>(tokens, use);
  }
  return use(std::integral_constant<int, kShortest>());
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_FFT_TABLES_H_
