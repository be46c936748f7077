// What the convolutions of an H3 layer over whole sequences take, which is training: its kernels as
// taps and as spectra, and the gradients of these.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_WEIGHTS_H_

#include <vector>

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/conv/tile_convolution.h"
#include "kernels/cpu/h3/h3_layout.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// Which kernels lie in which lanes.
struct H3ConvolutionLayout : H3Layout {
  H3ConvolutionLayout(const H3Parameters& parameters, int64_t longest_sequence);

  // Where the taps of a channel are: a tile for each channel block of each group.
  struct Place {
    int64_t tile;
    int64_t lane;
  };
  Place TapsOf(int64_t channel) const;

  // Row blocks of one head share a tile of the diagonal SSM; its number in its group.
  int64_t DiagonalTile(int64_t row_block) const {
    return tile_of_block[static_cast<size_t>(row_block)];
  }
  // Calls visit(tile, lane, head) for the lanes of all tiles of the diagonal SSM, in order.
  template <typename Visit>
  void ForEachLane(const Visit& visit) const;

  int64_t longest;
  std::vector<int64_t> tile_of_block;
  int64_t diagonal_tiles;  // per group
};

template <typename Visit>
void H3ConvolutionLayout::ForEachLane(const Visit& visit) const {
  for (int64_t group = 0; group < groups; ++group) {
    int64_t last = -1;
    for (int64_t block = 0; block < row_blocks; ++block) {
      const int64_t tile = DiagonalTile(block);
      if (tile == last) continue;
      last = tile;
      for (int64_t row = block * kTileChannels;
           row < (block + 1) * kTileChannels && row < Rows(group); ++row) {
        visit(group * diagonal_tiles + tile, row % kTileChannels, group * group_heads + Head(row));
      }
    }
  }
}

// The kernels, from parameters, for sequences of up to `longest` tokens.
class H3ConvolutionKernels final : public H3ConvolutionWeights {
 public:
  H3ConvolutionKernels(ThreadPool& pool, const H3Parameters& parameters, int64_t longest);

  int64_t bytes() const override { return shift_.bytes() + diagonal_.bytes(); }

  const H3ConvolutionLayout& layout() const { return layout_; }
  // Tiles as in the layout; skips are added to the first tap.
  const TileKernels& shift() const { return shift_; }
  const TileKernels& diagonal() const { return diagonal_; }

 private:
  H3ConvolutionLayout layout_;
  TileKernels shift_;
  TileKernels diagonal_;
};

// How both convolutions are computed for sequences of some length. Must not outlive what it was
// made of.
class H3ConvolutionForm {
 public:
  H3ConvolutionForm(ThreadPool& pool, FftPlans& plans, const H3ConvolutionKernels& weights,
                    int64_t tokens);

  int64_t tokens() const { return tokens_; }
  const H3ConvolutionLayout& layout() const { return weights_.layout(); }
  const TileConvolution& shift() const { return shift_; }
  const TileConvolution& diagonal() const { return diagonal_; }
  TileKernel ShiftKernel(int64_t group, int64_t channel_block) const;
  TileKernel DiagonalKernel(int64_t group, int64_t row_block) const;

 private:
  int64_t tokens_;
  const H3ConvolutionKernels& weights_;
  const FftPlan* shift_plan_;  // null for direct sums
  const FftPlan* diagonal_plan_;
  const float* shift_spectra_;
  const float* diagonal_spectra_;
  TileConvolution shift_;
  TileConvolution diagonal_;
};

// The gradients of the taps and kernels, summed over sequences.
//
// Each chunk of sequences has sums of its own, which are added in the order of the chunks: the same
// for any number of threads. Kernels are cut to the tokens of a call, n taps and T points.
class H3KernelGradients final : public H3Gradients {
 public:
  explicit H3KernelGradients(const H3ConvolutionLayout& layout);

  // Begins a call. Sums of chunks are unspecified until written.
  void Begin(int64_t chunks, int64_t tokens);
  // [n, kTileChannels] of a channel block, [T, kTileChannels] of a tile of the diagonal SSM.
  // Different chunks and groups may be written at the same time.
  float* ChunkTaps(int64_t group, int64_t chunk, int64_t channel_block);
  float* ChunkKernel(int64_t group, int64_t chunk, int64_t tile);
  // Adds the chunks of a group. Different groups may be added at the same time.
  void AddChunks(int64_t group);

  // dtaps [d, N] and dK [H, longest] of all calls. The skips' gradients are those of the first
  // taps.
  std::vector<float> Taps() const;
  std::vector<float> Kernels() const;
  void Zero();

 private:
  int64_t ChunkFloats() const;

  H3ConvolutionLayout layout_;
  int64_t chunks_ = 0;
  int64_t taps_ = 0;            // n
  int64_t tokens_ = 0;          // T
  std::vector<float> partial_;  // [groups, chunks, taps and kernels of a group]
  std::vector<float> dtaps_;    // [groups, channel blocks, N, kTileChannels]
  std::vector<float> dk_;       // [groups, tiles, longest, kTileChannels]
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_WEIGHTS_H_
