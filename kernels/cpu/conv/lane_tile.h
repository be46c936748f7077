// Sixteen channels of a sequence side by side, [tokens, kTileChannels], and back.
#ifndef HIPPODROME_KERNELS_CPU_CONV_LANE_TILE_H_
#define HIPPODROME_KERNELS_CPU_CONV_LANE_TILE_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/conv/fft_plan.h"
#include "kernels/cpu/conv/time_series.h"

namespace hippodrome::cpu {

// Copies x behind `before` rows of zeros, with zeros in the lanes that it lacks and in the rest of
// `rows` rows. Returns its first token.
inline float* LoadTile(const TimeSeries& x, int64_t before, int64_t rows, float* memory) {
  float* const first = std::fill_n(memory, before * kTileChannels, 0.0f);
  float* tile = first;
  for (int64_t t = 0; t < x.tokens; ++t, tile += kTileChannels) {
    std::copy_n(x.Row(t), x.width, tile);
    std::fill(tile + x.width, tile + kTileChannels, 0.0f);
  }
  std::fill(tile, memory + rows * kTileChannels, 0.0f);
  return first;
}

// The lanes of x of a tile, in the place of x or added to it.
inline void StoreTile(const float* tile, bool add, const TimeSeries& x) {
  for (int64_t t = 0; t < x.tokens; ++t, tile += kTileChannels) {
    float* row = x.Row(t);
    for (int64_t c = 0; c < x.width; ++c) row[c] = add ? row[c] + tile[c] : tile[c];
  }
}

// A whole tile as a series.
inline TimeSeries TileSeries(float* tile, int64_t tokens) {
  return {tile, kTileChannels, tokens, kTileChannels};
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_LANE_TILE_H_
