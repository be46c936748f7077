#include "kernels/cpu/h3/h3_convolution_weights.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "kernels/ssm/h3_ssm.h"

namespace hippodrome::cpu {
namespace {

std::vector<int64_t> TilesOfBlocks(const H3Layout& layout) {
  std::vector<int64_t> tiles;
  const int64_t rows = layout.group_heads * layout.head_dim * layout.head_dim;
  int64_t last_head = -1;  // of the block before, if all its rows are of one
  for (int64_t block = 0; block < layout.row_blocks; ++block) {
    const int64_t first = layout.Head(block * kTileChannels);
    const int64_t last = layout.Head(std::min(rows, (block + 1) * kTileChannels) - 1);
    const bool shared = first == last && first == last_head;
    tiles.push_back(tiles.empty() ? 0 : tiles.back() + (shared ? 0 : 1));
    last_head = first == last ? first : -1;
  }
  return tiles;
}

// A direct sum takes as long as this part of a transform's work for each of its L log2 L.
// Measured ns per (channel, token), AVX-512, both convolutions of a forward and a backward with 64
// taps: direct and FFT 64 tokens 1.9 and 1.4, 256: 2.5 and 2.1, 1024: 2.8 and 2.8, 4096: 2.9 and
// 4.1.
constexpr int64_t kTransformWork = 6;

// The plan to convolve with, or null for direct sums.
const FftPlan* PlanFor(FftPlans& plans, int64_t tokens, int64_t taps) {
  const int64_t length = FftPlan::LengthFor(tokens);
  const int64_t longest = std::min(taps, tokens);
  // sum_t min(t + 1, taps)
  const int64_t products = longest * tokens - longest * (longest - 1) / 2;
  const int64_t bits = std::countr_zero(static_cast<uint64_t>(length));
  return products <= kTransformWork * length * bits ? nullptr : &plans.For(tokens);
}

// Adds the first `rows` rows of each of `tiles` tiles.
void AddTiles(const float* from, int64_t tiles, int64_t rows, int64_t to_rows, float* to) {
  for (int64_t tile = 0; tile < tiles; ++tile, to += to_rows * kTileChannels) {
    for (int64_t i = 0; i < rows * kTileChannels; ++i) to[i] += *from++;
  }
}

}  // namespace

H3ConvolutionLayout::H3ConvolutionLayout(const H3Parameters& parameters, int64_t longest_sequence)
    : H3Layout(parameters),
      longest(longest_sequence),
      tile_of_block(TilesOfBlocks(*this)),
      diagonal_tiles(tile_of_block.back() + 1) {}

H3ConvolutionLayout::Place H3ConvolutionLayout::TapsOf(int64_t channel) const {
  const int64_t group = channel / (group_heads * head_dim);
  const int64_t in_group = channel - FirstChannel(group);
  return {.tile = group * channel_blocks + in_group / kTileChannels,
          .lane = in_group % kTileChannels};
}

H3ConvolutionKernels::H3ConvolutionKernels(ThreadPool& pool, const H3Parameters& p, int64_t longest)
    : layout_(p, longest),
      shift_(layout_.groups * layout_.channel_blocks, layout_.taps),
      diagonal_(layout_.groups * layout_.diagonal_tiles, longest) {
  assert(longest > 0);
  const HeadLoop loop = pool.Loop();
  const std::vector<float> taps = H3TapsWithSkips(p, loop);
  const std::vector<float> kernels = H3KernelsWithSkips(p, longest, loop);
  for (int64_t c = 0; c < layout_.d_model; ++c) {
    const auto [tile, lane] = layout_.TapsOf(c);
    float* to = shift_.Taps(tile) + lane;
    for (int64_t j = 0; j < layout_.taps; ++j) {
      to[j * kTileChannels] = taps[static_cast<size_t>(c * layout_.taps + j)];
    }
  }
  layout_.ForEachLane([&](int64_t tile, int64_t lane, int64_t head) {
    float* to = diagonal_.Taps(tile) + lane;
    const float* kernel = kernels.data() + head * longest;
    for (int64_t l = 0; l < longest; ++l) to[l * kTileChannels] = kernel[l];
  });
}

H3ConvolutionForm::H3ConvolutionForm(ThreadPool& pool, FftPlans& plans,
                                     const H3ConvolutionKernels& weights, int64_t tokens)
    : tokens_(tokens),
      weights_(weights),
      shift_plan_(PlanFor(plans, tokens, weights.shift().count())),
      diagonal_plan_(PlanFor(plans, tokens, weights.diagonal().count())),
      shift_spectra_(weights.shift().Spectra(pool, shift_plan_)),
      diagonal_spectra_(weights.diagonal().Spectra(pool, diagonal_plan_)),
      shift_(tokens, weights.shift().count(), shift_plan_),
      diagonal_(tokens, weights.diagonal().count(), diagonal_plan_) {}

TileKernel H3ConvolutionForm::ShiftKernel(int64_t group, int64_t channel_block) const {
  return weights_.shift().Tile(shift_plan_, shift_spectra_,
                               group * layout().channel_blocks + channel_block);
}

TileKernel H3ConvolutionForm::DiagonalKernel(int64_t group, int64_t row_block) const {
  return weights_.diagonal().Tile(
      diagonal_plan_, diagonal_spectra_,
      group * layout().diagonal_tiles + layout().DiagonalTile(row_block));
}

H3KernelGradients::H3KernelGradients(const H3ConvolutionLayout& layout)
    : layout_(layout),
      dtaps_(
          static_cast<size_t>(layout.groups * layout.channel_blocks * layout.taps * kTileChannels)),
      dk_(static_cast<size_t>(layout.groups * layout.diagonal_tiles * layout.longest *
                              kTileChannels)) {}

int64_t H3KernelGradients::ChunkFloats() const {
  return (layout_.channel_blocks * taps_ + layout_.diagonal_tiles * tokens_) * kTileChannels;
}

void H3KernelGradients::Begin(int64_t chunks, int64_t tokens) {
  chunks_ = chunks;
  taps_ = std::min(layout_.taps, tokens);
  tokens_ = tokens;
  partial_.resize(static_cast<size_t>(layout_.groups * chunks * ChunkFloats()));
}

float* H3KernelGradients::ChunkTaps(int64_t group, int64_t chunk, int64_t channel_block) {
  return partial_.data() + (group * chunks_ + chunk) * ChunkFloats() +
         channel_block * taps_ * kTileChannels;
}

float* H3KernelGradients::ChunkKernel(int64_t group, int64_t chunk, int64_t tile) {
  return ChunkTaps(group, chunk, layout_.channel_blocks) + tile * tokens_ * kTileChannels;
}

void H3KernelGradients::AddChunks(int64_t group) {
  const int64_t blocks = layout_.channel_blocks;
  const int64_t tiles = layout_.diagonal_tiles;
  const int64_t taps = layout_.taps;
  const int64_t longest = layout_.longest;
  for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
    AddTiles(ChunkTaps(group, chunk, 0), blocks, taps_, taps,
             dtaps_.data() + group * blocks * taps * kTileChannels);
    AddTiles(ChunkKernel(group, chunk, 0), tiles, tokens_, longest,
             dk_.data() + group * tiles * longest * kTileChannels);
  }
}

std::vector<float> H3KernelGradients::Taps() const {
  std::vector<float> taps(static_cast<size_t>(layout_.d_model * layout_.taps));
  for (int64_t c = 0; c < layout_.d_model; ++c) {
    const auto [tile, lane] = layout_.TapsOf(c);
    const float* from = dtaps_.data() + tile * layout_.taps * kTileChannels + lane;
    for (int64_t j = 0; j < layout_.taps; ++j) {
      taps[static_cast<size_t>(c * layout_.taps + j)] = from[j * kTileChannels];
    }
  }
  return taps;
}

std::vector<float> H3KernelGradients::Kernels() const {
  const int64_t longest = layout_.longest;
  std::vector<float> kernels(static_cast<size_t>(layout_.heads * longest));
  layout_.ForEachLane([&](int64_t tile, int64_t lane, int64_t head) {
    const float* from = dk_.data() + tile * longest * kTileChannels + lane;
    float* kernel = kernels.data() + head * longest;
    for (int64_t l = 0; l < longest; ++l) kernel[l] += from[l * kTileChannels];
  });
  return kernels;
}

void H3KernelGradients::Zero() {
  std::fill(dtaps_.begin(), dtaps_.end(), 0.0f);
  std::fill(dk_.begin(), dk_.end(), 0.0f);
}

}  // namespace hippodrome::cpu
