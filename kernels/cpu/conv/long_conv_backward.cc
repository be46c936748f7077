// ConvolveSequencesBackward: the gradients of every tile, in chunks of sequences.
#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/long_conv.h"
#include "kernels/cpu/conv/tile.h"

namespace hippodrome::cpu {
namespace {

// Up to here direct sums are faster than transforms. Measured ns per (channel, time), sums and FFT,
// 64 channels, one thread: 64 tokens 2.8 and 3.1, 128: 4.0 and 6.5, 192: 4.9 and 5.0, 256: 6.0 and
// 3.7, 320: 7.1 and 5.5.
constexpr int64_t kLongestDirect = 192;

// Sequences whose sums are taken together; constant, so that sums do not depend on threads.
constexpr int64_t kChunkSequences = 8;

// What all tiles of a call share.
struct Call {
  const LongConvTiling& tiling;
  const TileKernels& kernels;
  const FftPlan* plan;  // null for direct sums
  const float* spectra;
  const TileConvolution& convolution;
  Tensor u;
  int64_t sequences;
  Direction direction;
  Tensor dy;
  Gradient du;

  int64_t tokens() const { return u.rows / sequences; }
  int64_t chunks() const { return (sequences + kChunkSequences - 1) / kChunkSequences; }
  TileKernel Kernel(const LongConvTiling::Tile& tile) const {
    return kernels.Tile(plan, spectra, tile.kernel);
  }
};

// The gradients of one tile, a sequence after another: du as a tile [tokens, kTileChannels], and
// the sum of dK. Works in `memory`, Floats() of them.
class TileGradient {
 public:
  static int64_t Floats(const Call& call) {
    const TileConvolution& c = call.convolution;
    return call.tokens() * kTileChannels + c.kept_floats() + c.sums_floats() + c.work_floats();
  }
  TileGradient(const Call& call, float* memory)
      : tokens_(call.tokens()),
        convolution_(call.convolution),
        tile_(memory),
        kept_(tile_ + tokens_ * kTileChannels),
        sums_(kept_ + convolution_.kept_floats()),
        work_(sums_ + convolution_.sums_floats()) {
    std::fill_n(sums_, convolution_.sums_floats(), 0.0f);
  }

  const float* Add(const TileKernel& kernel, const TimeSeries& u, const TimeSeries& dy) {
    convolution_.Keep(LoadTile(u, 0, tokens_, tile_), kept_, work_);
    LoadTile(dy, 0, tokens_, tile_);
    convolution_.Correlate(kernel, kept_, tile_, tile_, sums_, work_);
    return tile_;
  }
  void TakeSums(float* dk) const { convolution_.TakeSums(sums_, dk, work_); }

 private:
  int64_t tokens_;
  const TileConvolution& convolution_;
  float *tile_, *kept_, *sums_, *work_;
};

// The sequences of one chunk in two tiles, which share cache lines, from tile `first` on: writes
// du, and the sums of dK to `dk`, [tokens, kTileChannels] for each tile.
void ChunkBackward(const Call& call, int64_t first, int64_t chunk, float* dk) {
  const int64_t floats = TileGradient::Floats(call);
  float* memory = ThreadScratch<float>(ScratchUse::kConvolution, 2 * floats);
  TileGradient gradients[] = {{call, memory}, {call, memory + floats}};
  const int64_t width = std::min<int64_t>(2, call.tiling.tiles() - first);
  const int64_t end = std::min(call.sequences, (chunk + 1) * kChunkSequences);
  for (int64_t b = chunk * kChunkSequences; b < end; ++b) {
    for (int64_t i = 0; i < width; ++i) {
      const LongConvTiling::Tile tile = call.tiling.At(first + i);
      const auto series = [&](const Tensor& matrix) {
        return ChannelSeries(matrix, call.tokens(), b, tile.begin, tile.width, call.direction);
      };
      const float* du = gradients[i].Add(call.Kernel(tile), series(call.u), series(call.dy));
      if (call.du.tensor.data != nullptr) StoreTile(du, call.du.add, series(call.du.tensor));
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    gradients[i].TakeSums(dk + i * call.tokens() * kTileChannels);
  }
}

}  // namespace

void ConvolveSequencesBackward(ThreadPool& pool, FftPlans& plans, const LongConvKernels& weights,
                               Tensor u, int64_t sequences, Direction direction, Tensor dy,
                               Gradient du, LongConvKernelGradients& sums, ConvMethod method) {
  if (sequences == 0 || u.rows == 0) return;
  const int64_t tokens = u.rows / sequences;
  assert(u.rows == tokens * sequences && tokens <= weights.longest() && dy.rows == u.rows);
  assert(u.cols == weights.channels() && dy.cols == u.cols);
  const bool direct = method == ConvMethod::kToeplitz ||
                      (method == ConvMethod::kFastest && tokens <= kLongestDirect);
  const FftPlan* plan = direct ? nullptr : &plans.For(tokens);
  const LongConvTiling& tiling = weights.tiling();
  const TileConvolution convolution(tokens, weights.longest(), plan);
  const Call call = {.tiling = tiling,
                     .kernels = weights.Tiles(),
                     .plan = plan,
                     .spectra = weights.Tiles().Spectra(pool, plan),
                     .convolution = convolution,
                     .u = u,
                     .sequences = sequences,
                     .direction = direction,
                     .dy = dy,
                     .du = du};
  const int64_t tiles = tiling.tiles();
  const auto size = static_cast<size_t>(tokens * kTileChannels);
  std::vector<float> partial(static_cast<size_t>(call.chunks() * tiles) * size);
  const auto dk = [&](int64_t chunk, int64_t tile) {
    return std::span(partial).subspan(static_cast<size_t>(chunk * tiles + tile) * size, size);
  };
  const int64_t pairs = (tiles + 1) / 2;
  pool.Run(call.chunks() * pairs, [&](int64_t index, int) {
    const int64_t chunk = index / pairs;
    const int64_t first = index % pairs * 2;
    ChunkBackward(call, first, chunk, dk(chunk, first).data());
  });
  const int64_t of_kernel = tiles / tiling.kernel_tiles();
  pool.Run(tiling.kernel_tiles(), [&](int64_t kernel, int) {
    for (int64_t i = 0; i < call.chunks() * of_kernel; ++i) {
      sums.Add(kernel, dk(i / of_kernel, kernel * of_kernel + i % of_kernel));
    }
  });
}

}  // namespace hippodrome::cpu
