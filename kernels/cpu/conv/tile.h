// Channels of a sequence as series, and sixteen of them side by side in a tile, [tokens,
// kTileChannels].
#ifndef HIPPODROME_KERNELS_CPU_CONV_TILE_H_
#define HIPPODROME_KERNELS_CPU_CONV_TILE_H_

#include <algorithm>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {

// A tile: channels side by side, one per vector lane.
inline constexpr int64_t kTileChannels = 16;

// Some channels of a sequence in the order in which an SSM runs through time: row t, of `width`
// floats, starts t * step floats after `first`. The step is negative in reversed time.
struct TimeSeries {
  float* first;
  int64_t step;
  int64_t tokens;
  int64_t width;

  float* Row(int64_t t) const { return first + t * step; }
};

// Channels [begin, begin + width) of sequence b of `tokens` rows, in the order of `direction`.
inline TimeSeries ChannelSeries(const Tensor& matrix, int64_t tokens, int64_t b, int64_t begin,
                                int64_t width, Direction direction) {
  const bool forward = direction == Direction::kForward;
  const int64_t first = b * tokens + (forward ? 0 : tokens - 1);
  return {.first = F32Row(matrix, first) + begin,
          .step = forward ? matrix.stride : -matrix.stride,
          .tokens = tokens,
          .width = width};
}

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

// A whole tile as a series, to be read where it is const.
inline TimeSeries TileSeries(const float* tile, int64_t tokens) {
  return {const_cast<float*>(tile), kTileChannels, tokens, kTileChannels};
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_TILE_H_
