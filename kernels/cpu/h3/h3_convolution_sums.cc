#include "kernels/cpu/h3/h3_convolution_sums.h"

#include <algorithm>

namespace hippodrome::cpu {
namespace {

// Adds the first `rows` rows of each of `tiles` tiles.
void AddTiles(const float* from, int64_t tiles, int64_t rows, int64_t to_rows, float* to) {
  for (int64_t tile = 0; tile < tiles; ++tile, to += to_rows * kLanes) {
    for (int64_t i = 0; i < rows * kLanes; ++i) to[i] += *from++;
  }
}

}  // namespace

H3KernelGradients::H3KernelGradients(const H3ConvolutionLayout& layout)
    : layout_(layout),
      dtaps_(static_cast<size_t>(layout.groups * layout.channel_blocks * layout.taps * kLanes)),
      dk_(static_cast<size_t>(layout.groups * layout.diagonal_tiles * layout.longest * kLanes)) {}

int64_t H3KernelGradients::ChunkFloats() const {
  return (layout_.channel_blocks * taps_ + layout_.diagonal_tiles * tokens_) * kLanes;
}

void H3KernelGradients::Begin(int64_t chunks, int64_t tokens) {
  chunks_ = chunks;
  taps_ = std::min(layout_.taps, tokens);
  tokens_ = tokens;
  partial_.resize(static_cast<size_t>(layout_.groups * chunks * ChunkFloats()));
}

float* H3KernelGradients::ChunkTaps(int64_t group, int64_t chunk, int64_t channel_block) {
  return partial_.data() + (group * chunks_ + chunk) * ChunkFloats() +
         channel_block * taps_ * kLanes;
}

float* H3KernelGradients::ChunkKernel(int64_t group, int64_t chunk, int64_t tile) {
  return ChunkTaps(group, chunk, layout_.channel_blocks) + tile * tokens_ * kLanes;
}

void H3KernelGradients::AddChunks(int64_t group) {
  const int64_t blocks = layout_.channel_blocks;
  const int64_t tiles = layout_.diagonal_tiles;
  const int64_t taps = layout_.taps;
  const int64_t longest = layout_.longest;
  for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
    AddTiles(ChunkTaps(group, chunk, 0), blocks, taps_, taps,
             dtaps_.data() + group * blocks * taps * kLanes);
    AddTiles(ChunkKernel(group, chunk, 0), tiles, tokens_, longest,
             dk_.data() + group * tiles * longest * kLanes);
  }
}

std::vector<float> H3KernelGradients::Taps() const {
  std::vector<float> taps(static_cast<size_t>(layout_.d_model * layout_.taps));
  for (int64_t c = 0; c < layout_.d_model; ++c) {
    const auto [tile, lane] = layout_.TapsOf(c);
    const float* from = dtaps_.data() + tile * layout_.taps * kLanes + lane;
    for (int64_t j = 0; j < layout_.taps; ++j) {
      taps[static_cast<size_t>(c * layout_.taps + j)] = from[j * kLanes];
    }
  }
  return taps;
}

std::vector<float> H3KernelGradients::Kernels() const {
  const int64_t longest = layout_.longest;
  std::vector<float> kernels(static_cast<size_t>(layout_.heads * longest));
  layout_.ForEachLane([&](int64_t tile, int64_t lane, int64_t head) {
    const float* from = dk_.data() + tile * longest * kLanes + lane;
    float* kernel = kernels.data() + head * longest;
    for (int64_t l = 0; l < longest; ++l) kernel[l] += from[l * kLanes];
  });
  return kernels;
}

void H3KernelGradients::Zero() {
  std::fill(dtaps_.begin(), dtaps_.end(), 0.0f);
  std::fill(dk_.begin(), dk_.end(), 0.0f);
}

}  // namespace hippodrome::cpu
