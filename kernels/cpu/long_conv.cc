#include "kernels/cpu/long_conv.h"

#include <algorithm>

#include "kernels/cpu/fft_conv.h"
#include "kernels/cpu/packed_weights.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tensor_memory.h"
#include "kernels/cpu/toeplitz.h"

namespace hippodrome::cpu {
namespace {

// Up to here the Toeplitz product is at least as fast. Measured ns per (channel, time), product and
// FFT, 1024 channels, one thread: 32 tokens 0.7 and 1.3, 64: 2.6 and 2.3, 128: 2.9 and 4.0,
// 192: 3.4 and 3.4, 256: 3.8 and 3.0, 300: 4.2 and 4.4, 512: 5.5 and 3.6, 1024: 9.1 and 4.1;
// 4096: 3.4 by FFT.
constexpr int64_t kLongestProduct = 192;

// Channels of a transform: two tiles read and write whole pairs of cache lines of a row, which took
// a quarter off the time of one; four outgrow the second-level cache.
constexpr int64_t kFftChannels = 2 * kTileChannels;

// Channels of a head that are convolved together, and their number per head.
struct Tiling {
  int64_t head_channels;
  int64_t tile_channels;

  int64_t tiles() const { return (head_channels + tile_channels - 1) / tile_channels; }
};

// Channels [begin, begin + width) of sequence b, in the order of `direction`.
TimeSeries Series(const Tensor& matrix, int64_t tokens, int64_t b, int64_t begin, int64_t width,
                  Direction direction) {
  const bool forward = direction == Direction::kForward;
  const int64_t first = b * tokens + (forward ? 0 : tokens - 1);
  return {.first = F32Row(matrix, first) + begin,
          .step = forward ? matrix.stride : -matrix.stride,
          .tokens = tokens,
          .width = width};
}

// y = spectrum * u for u.width <= kFftChannels.
void FftProduct(const FftPlan& plan, const float* spectrum, const TimeSeries& u,
                const TimeSeries& y) {
  const int64_t tiles = (u.width + kTileChannels - 1) / kTileChannels;
  const int64_t width = tiles * kTileChannels;
  float* work =
      ThreadScratch<float>(ScratchUse::kConvolution, tiles * plan.work_floats() + u.tokens * width);
  if (u.width == width) return ConvolveTiles(plan, spectrum, u, y, work);
  // A tile that lacks channels is completed with zeros beside the caller's memory.
  const TimeSeries padded = {work + tiles * plan.work_floats(), width, u.tokens, width};
  for (int64_t t = 0; t < u.tokens; ++t) {
    std::copy_n(u.Row(t), u.width, padded.Row(t));
    std::fill(padded.Row(t) + u.width, padded.Row(t) + width, 0.0f);
  }
  ConvolveTiles(plan, spectrum, padded, padded, work);
  for (int64_t t = 0; t < y.tokens; ++t) std::copy_n(padded.Row(t), y.width, y.Row(t));
}

}  // namespace

void ConvolveSequences(ThreadPool& pool, FftPlans& plans, const SharedKernels& weights, Tensor u,
                       int64_t sequences, Direction direction, Tensor y, ConvMethod method) {
  if (sequences == 0 || u.rows == 0) return;
  const int64_t tokens = u.rows / sequences;
  assert(u.rows == tokens * sequences && tokens <= weights.longest() && y.rows == u.rows);
  assert(u.cols == weights.channels() && y.cols == u.cols);
  const bool product = method == ConvMethod::kToeplitz ||
                       (method == ConvMethod::kFastest && tokens <= kLongestProduct);
  const FftPlan* plan = product ? nullptr : &plans.For(tokens);
  const float* spectra = product ? nullptr : weights.Spectra(*plan);
  // Channels of a tile are of one head.
  const Tiling tiling = {.head_channels = weights.channels() / weights.heads(),
                         .tile_channels = product ? kPanelColumns : kFftChannels};
  const int64_t tiles = weights.heads() * tiling.tiles();
  pool.Run(sequences * tiles, [&](int64_t index, int) {
    const int64_t b = index / tiles;
    const int64_t head = index % tiles / tiling.tiles();
    const int64_t offset = index % tiles % tiling.tiles() * tiling.tile_channels;
    const int64_t begin = head * tiling.head_channels + offset;
    const int64_t width = std::min(tiling.tile_channels, tiling.head_channels - offset);
    const TimeSeries in = Series(u, tokens, b, begin, width, direction);
    const TimeSeries out = Series(y, tokens, b, begin, width, direction);
    if (product) {
      ToeplitzProduct(weights.Taps(head), in, out);
    } else {
      FftProduct(*plan, spectra + head * 2 * plan->length(), in, out);
    }
  });
}

}  // namespace hippodrome::cpu
