// How the channels of a long convolution are laid out in tiles of vector lanes.
#ifndef HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_TILING_H_
#define HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_TILING_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/conv/fft_plan.h"

namespace hippodrome::cpu {

// Heads of at least a tile's channels have tiles of their own, whose lanes share a kernel. Narrower
// ones stand side by side: each lane has the kernel of its channel.
struct LongConvTiling {
  int64_t channels;
  int64_t heads;

  struct Tile {
    int64_t begin;   // its first channel
    int64_t width;   // its channels, at most kTileChannels
    int64_t kernel;  // which of the kernel tiles it uses
  };

  int64_t head_channels() const { return channels / heads; }
  bool narrow() const { return head_channels() < kTileChannels; }
  int64_t tiles() const { return narrow() ? Tiles(channels) : heads * Tiles(head_channels()); }
  Tile At(int64_t index) const {
    if (narrow()) return Cut(0, channels, index, index);
    const int64_t tiles_of_head = Tiles(head_channels());
    const int64_t head = index / tiles_of_head;
    return Cut(head * head_channels(), head_channels(), index % tiles_of_head, head);
  }

  // Tiles of lanes with different kernels.
  int64_t kernel_tiles() const { return narrow() ? Tiles(channels) : heads; }
  // The head of a lane of a kernel tile, or -1 for a lane without one.
  int64_t Head(int64_t kernel_tile, int64_t lane) const {
    if (!narrow()) return kernel_tile;
    const int64_t channel = kernel_tile * kTileChannels + lane;
    return channel < channels ? channel / head_channels() : -1;
  }

 private:
  static int64_t Tiles(int64_t of) { return (of + kTileChannels - 1) / kTileChannels; }
  static Tile Cut(int64_t first, int64_t of, int64_t tile, int64_t kernel) {
    const int64_t offset = tile * kTileChannels;
    return {first + offset, std::min(kTileChannels, of - offset), kernel};
  }
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_TILING_H_
