// The kernels of a convolution whose channels share them by heads, and the gradients of these.
#ifndef HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_WEIGHTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/conv/tile_convolution.h"
#include "kernels/ssm/head_loop.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// How the channels are laid out in tiles.
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

// Kernels of H heads with their skip, K[0] + D, K[1], ..., in each of the forms that products,
// transforms of heads, and tiles of lanes take. Forms are made at their first use: not safe for
// concurrent use.
class LongConvKernels final : public LongConvWeights {
 public:
  LongConvKernels(const LongConvParameters& parameters, int64_t longest,
                  const HeadLoop& loop = OneAfterAnother);

  int64_t longest() const override { return longest_; }
  int64_t bytes() const override;

  const LongConvTiling& tiling() const { return tiling_; }
  int64_t channels() const { return tiling_.channels; }
  int64_t heads() const { return tiling_.heads; }
  // The taps of one head as ToeplitzProduct() reads them: the kernel backwards from here, zeros
  // after it.
  const float* Taps(int64_t head) const;
  // The spectra of all heads in the order of FftPlan::Spectrum(), [H, plan.length(), re | im],
  // computed at the first use of a length.
  const float* Spectra(const FftPlan& plan) const;
  // By kernel tiles of tiling().
  const TileKernels& Tiles() const;

 private:
  int64_t TapsOfHead() const;

  LongConvTiling tiling_;
  int64_t longest_;
  std::vector<float> taps_;
  mutable std::map<int64_t, std::vector<float>> spectra_;  // by the length of their transform
  mutable std::shared_ptr<TileKernels> tiles_;
};

// The gradients of the kernels, summed over sequences.
class LongConvKernelGradients final : public LongConvGradients {
 public:
  LongConvKernelGradients(const LongConvTiling& tiling, int64_t longest);

  // Adds what some channels of a kernel tile sum to, [tokens, kTileChannels], tokens <= longest.
  // Different kernel tiles may be added to at the same time.
  void Add(int64_t kernel_tile, std::span<const float> dk);
  // d loss / d K of every head, [H, longest].
  std::vector<double> OfHeads() const;
  void Zero();

 private:
  LongConvTiling tiling_;
  int64_t longest_;
  std::vector<double> lanes_;  // [kernel tiles, longest, kTileChannels]
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_LONG_CONV_WEIGHTS_H_
