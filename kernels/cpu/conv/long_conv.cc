#include "kernels/cpu/conv/long_conv.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/fft.h"
#include "kernels/cpu/conv/tile.h"
#include "kernels/cpu/conv/toeplitz.h"

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

// The same of direct sums, for channels that have kernels of their own. Measured as above, 64
// channels, sums and FFT: 64 tokens 1.1 and 1.0, 128: 1.6 and 2.1, 160: 1.9 and 1.7, 256: 2.7 and
// 1.2.
constexpr int64_t kLongestDirect = 144;

// Channels of a head that are convolved together, and their number per head.
struct HeadTiles {
  int64_t head_channels;
  int64_t tile_channels;

  int64_t count() const { return (head_channels + tile_channels - 1) / tile_channels; }
};

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

// Heads of many channels: tiles of a head share its kernel.
void ConvolveHeads(ThreadPool& pool, FftPlans& plans, const LongConvKernels& weights, Tensor u,
                   int64_t sequences, Direction direction, Tensor y, bool product) {
  const int64_t tokens = u.rows / sequences;
  const FftPlan* plan = product ? nullptr : &plans.For(tokens);
  const float* spectra = product ? nullptr : weights.Spectra(*plan);
  // Channels of a tile are of one head.
  const HeadTiles tiling = {.head_channels = weights.tiling().head_channels(),
                            .tile_channels = product ? kToeplitzChannels : kFftChannels};
  const int64_t tiles = weights.heads() * tiling.count();
  pool.Run(sequences * tiles, [&](int64_t index, int) {
    const int64_t b = index / tiles;
    const int64_t head = index % tiles / tiling.count();
    const int64_t offset = index % tiles % tiling.count() * tiling.tile_channels;
    const int64_t begin = head * tiling.head_channels + offset;
    const int64_t width = std::min(tiling.tile_channels, tiling.head_channels - offset);
    const TimeSeries in = ChannelSeries(u, tokens, b, begin, width, direction);
    const TimeSeries out = ChannelSeries(y, tokens, b, begin, width, direction);
    if (product) {
      ToeplitzProduct(weights.Taps(head), in, out);
    } else {
      FftProduct(*plan, spectra + head * 2 * plan->length(), in, out);
    }
  });
}

// y of one tile whose lanes have kernels of their own.
void LaneProduct(const TileConvolution& convolution, const TileKernel& kernel, const TimeSeries& u,
                 const TimeSeries& y) {
  float* tile = ThreadScratch<float>(ScratchUse::kConvolution,
                                     u.tokens * kTileChannels + convolution.work_floats());
  LoadTile(u, 0, u.tokens, tile);
  convolution.Convolve(kernel, tile, tile, nullptr, tile + u.tokens * kTileChannels);
  StoreTile(tile, false, y);
}

// Heads of few channels: lanes of a tile have kernels of their own. Some sequences go through the
// kernels of two tiles, which share cache lines, while these are near.
void ConvolveLanes(ThreadPool& pool, FftPlans& plans, const LongConvKernels& weights, Tensor u,
                   int64_t sequences, Direction direction, Tensor y, bool direct) {
  constexpr int64_t kSequences = 8;
  const int64_t tokens = u.rows / sequences;
  const FftPlan* plan = direct ? nullptr : &plans.For(tokens);
  const TileKernels& kernels = weights.Tiles();
  const float* spectra = kernels.Spectra(pool, plan);
  const TileConvolution convolution(tokens, kernels.count(), plan);
  const int64_t tiles = weights.tiling().tiles();
  const int64_t pairs = (tiles + 1) / 2;
  pool.Run((sequences + kSequences - 1) / kSequences * pairs, [&](int64_t index, int) {
    const int64_t first = index % pairs * 2;
    const int64_t begin = index / pairs * kSequences;
    for (int64_t b = begin; b < std::min(sequences, begin + kSequences); ++b) {
      for (int64_t i = first; i < std::min(tiles, first + 2); ++i) {
        const LongConvTiling::Tile tile = weights.tiling().At(i);
        const auto series = [&](const Tensor& matrix) {
          return ChannelSeries(matrix, tokens, b, tile.begin, tile.width, direction);
        };
        LaneProduct(convolution, kernels.Tile(plan, spectra, tile.kernel), series(u), series(y));
      }
    }
  });
}

}  // namespace

void ConvolveSequences(ThreadPool& pool, FftPlans& plans, const LongConvKernels& weights, Tensor u,
                       int64_t sequences, Direction direction, Tensor y, ConvMethod method) {
  if (sequences == 0 || u.rows == 0) return;
  const int64_t tokens = u.rows / sequences;
  assert(u.rows == tokens * sequences && tokens <= weights.longest() && y.rows == u.rows);
  assert(u.cols == weights.channels() && y.cols == u.cols);
  const bool narrow = weights.tiling().narrow();
  const bool product =
      method == ConvMethod::kToeplitz ||
      (method == ConvMethod::kFastest && tokens <= (narrow ? kLongestDirect : kLongestProduct));
  (narrow ? ConvolveLanes : ConvolveHeads)(pool, plans, weights, u, sequences, direction, y,
                                           product);
}

}  // namespace hippodrome::cpu
