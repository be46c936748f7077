// Which kernels of an H3 layer lie in which lanes when whole sequences are convolved.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_LAYOUT_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_LAYOUT_H_

#include <vector>

#include "kernels/cpu/h3/h3_layout.h"

namespace hippodrome::cpu {

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
      for (int64_t row = block * kLanes; row < (block + 1) * kLanes && row < Rows(group); ++row) {
        visit(group * diagonal_tiles + tile, row % kLanes, group * group_heads + Head(row));
      }
    }
  }
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_LAYOUT_H_
