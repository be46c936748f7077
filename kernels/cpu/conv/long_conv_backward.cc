#include "kernels/cpu/conv/long_conv_backward.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/scratch.h"
#include "kernels/cpu/conv/channel_series.h"
#include "kernels/cpu/conv/direct_conv.h"
#include "kernels/cpu/conv/fft_conv.h"
#include "kernels/cpu/conv/fft_gradient.h"
#include "kernels/cpu/conv/lane_tile.h"

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
class DirectTile {
 public:
  static int64_t Floats(const Call& call) {
    return (4 * call.tokens() + 4 * kSeriesPadding) * kTileChannels;
  }
  DirectTile(const Call& call, float* memory)
      : tokens_(call.tokens()),
        rows_(tokens_ + 2 * kSeriesPadding),
        u_(memory),
        dy_(u_ + rows_ * kTileChannels),
        du_(dy_ + rows_ * kTileChannels),
        sums_(du_ + tokens_ * kTileChannels) {
    std::fill_n(sums_, tokens_ * kTileChannels, 0.0f);
  }

  const float* Add(const TileKernel& kernel, const TimeSeries& u, const TimeSeries& dy) {
    const float* const inputs = LoadTile(u, kSeriesPadding, rows_, u_);
    const float* const outputs = LoadTile(dy, kSeriesPadding, rows_, dy_);
    CorrelateDirect(kernel.taps, kernel.count, outputs, tokens_, du_);
    AddCorrelation(inputs, outputs, tokens_, tokens_, sums_);
    return du_;
  }
  void TakeSums(float* dk) const { std::copy_n(sums_, tokens_ * kTileChannels, dk); }

 private:
  int64_t tokens_;
  int64_t rows_;  // of a padded series
  float *u_, *dy_, *du_, *sums_;
};

class FftTile {
 public:
  static int64_t Floats(const Call& call) {
    return 5 * call.plan->length() * kTileChannels + call.plan->work_floats();
  }
  FftTile(const Call& call, float* memory)
      : tokens_(call.tokens()),
        plan_(*call.plan),
        tile_(memory),
        kept_(tile_ + plan_.length() * kTileChannels),
        sums_(kept_ + 2 * plan_.length() * kTileChannels),
        work_(sums_ + 2 * plan_.length() * kTileChannels) {
    std::fill_n(sums_, 2 * plan_.length() * kTileChannels, 0.0f);
  }

  const float* Add(const TileKernel& kernel, const TimeSeries& u, const TimeSeries& dy) {
    TransformTile(plan_, LoadTile(u, 0, plan_.length(), tile_), kept_, work_);
    const TimeSeries tile = TileSeries(LoadTile(dy, 0, tokens_, tile_), tokens_);
    CorrelateKept(plan_, kernel.spectrum, kept_, tile, tile, sums_, work_);
    return tile_;
  }
  void TakeSums(float* dk) const {
    InverseTile(plan_, sums_, TileSeries(dk, tokens_), work_);
    const float scale = 1.0f / static_cast<float>(plan_.length());
    for (int64_t i = 0; i < tokens_ * kTileChannels; ++i) dk[i] *= scale;
  }

 private:
  int64_t tokens_;
  const FftPlan& plan_;
  float *tile_, *kept_, *sums_, *work_;
};

// The sequences of one chunk in two tiles, which share cache lines, from tile `first` on: writes
// du, and the sums of dK to `dk`, [tokens, kTileChannels] for each tile.
template <typename Method>
void ChunkBackward(const Call& call, int64_t first, int64_t chunk, float* dk) {
  float* memory = ThreadScratch<float>(ScratchUse::kConvolution, 2 * Method::Floats(call));
  Method methods[] = {{call, memory}, {call, memory + Method::Floats(call)}};
  const int64_t width = std::min<int64_t>(2, call.tiling.tiles() - first);
  const int64_t end = std::min(call.sequences, (chunk + 1) * kChunkSequences);
  for (int64_t b = chunk * kChunkSequences; b < end; ++b) {
    for (int64_t i = 0; i < width; ++i) {
      const LongConvTiling::Tile tile = call.tiling.At(first + i);
      const auto series = [&](const Tensor& matrix) {
        return ChannelSeries(matrix, call.tokens(), b, tile.begin, tile.width, call.direction);
      };
      const float* du = methods[i].Add(call.Kernel(tile), series(call.u), series(call.dy));
      if (call.du.tensor.data != nullptr) StoreTile(du, call.du.add, series(call.du.tensor));
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    methods[i].TakeSums(dk + i * call.tokens() * kTileChannels);
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
  const Call call = {.tiling = tiling,
                     .kernels = weights.Tiles(),
                     .plan = plan,
                     .spectra = weights.Tiles().Spectra(pool, plan),
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
    const auto backward = direct ? ChunkBackward<DirectTile> : ChunkBackward<FftTile>;
    backward(call, first, chunk, dk(chunk, first).data());
  });
  const int64_t of_kernel = tiles / tiling.kernel_tiles();
  pool.Run(tiling.kernel_tiles(), [&](int64_t kernel, int) {
    for (int64_t i = 0; i < call.chunks() * of_kernel; ++i) {
      sums.Add(kernel, dk(i / of_kernel, kernel * of_kernel + i % of_kernel));
    }
  });
}

}  // namespace hippodrome::cpu
