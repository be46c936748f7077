// The causal convolution of one sequence in one tile of 16 channels, and its gradients, by direct
// sums or by FFT, and the kernels that it takes.
//   y[t] = sum_{j <= t} k[j] x[t - j]
//   dx[t] = sum_{j} k[j] dy[t + j],  dk[j] += sum_t dy[t] x[t - j]
#ifndef HIPPODROME_KERNELS_CPU_CONV_TILE_CONVOLUTION_H_
#define HIPPODROME_KERNELS_CPU_CONV_TILE_CONVOLUTION_H_

#include <map>
#include <memory>

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/fft.h"

namespace hippodrome::cpu {

// The kernels of a tile.
struct TileKernel {
  const float* taps = nullptr;  // [count, kTileChannels], zeros up to a multiple of 4
  int64_t count = 0;
  // [length, re | im, kTileChannels], as of TransformTile() with the plan in use.
  const float* spectrum = nullptr;
};

// Kernels in tiles of 16 lanes. Not safe for concurrent use, but for Tile().
class TileKernels {
 public:
  TileKernels(int64_t tiles, int64_t count);

  int64_t tiles() const { return tiles_; }
  int64_t count() const { return count_; }
  int64_t bytes() const;
  // Taps [count, kTileChannels] of a tile.
  float* Taps(int64_t tile) const;
  // The spectra for `plan`, computed at its first use; null for a null plan.
  const float* Spectra(ThreadPool& pool, const FftPlan* plan) const;
  // REQUIRES: spectra of Spectra() with this plan.
  TileKernel Tile(const FftPlan* plan, const float* spectra, int64_t tile) const;

 private:
  int64_t TapFloats() const;

  int64_t tiles_;
  int64_t count_;
  std::shared_ptr<void> taps_;
  mutable std::map<int64_t, std::shared_ptr<void>> spectra_;  // by the length of the transform
};

// Buffers are aligned to 64 bytes and hold as many floats as the functions of their names say.
class TileConvolution {
 public:
  // `plan` of at least `tokens` points, or null for direct sums. `count`: of the kernels' taps.
  TileConvolution(int64_t tokens, int64_t count, const FftPlan* plan)
      : tokens_(tokens), count_(count), plan_(plan) {}

  int64_t kept_floats() const;
  int64_t sums_floats() const;
  int64_t work_floats() const;

  // y, and in `kept`, unless that is null, what the gradient of k needs of x.  x, y: [tokens,
  // kTileChannels], may be the same.
  void Convolve(const TileKernel& kernel, const float* x, float* y, float* kept, float* work) const;
  // What Convolve() keeps of x, alone.
  void Keep(const float* x, float* kept, float* work) const;
  // dx, and dk into `sums`, which begin as zeros.  dy, dx: [tokens, kTileChannels], may be the
  // same.
  void Correlate(const TileKernel& kernel, const float* kept, const float* dy, float* dx,
                 float* sums, float* work) const;
  // dk from `sums`: [min(count, tokens), kTileChannels].
  void TakeSums(const float* sums, float* dk, float* work) const;

 private:
  int64_t tokens_;
  int64_t count_;
  const FftPlan* plan_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_TILE_CONVOLUTION_H_
