#include "kernels/cpu/h3/h3_convolution_layout.h"

#include <algorithm>

namespace hippodrome::cpu {
namespace {

std::vector<int64_t> TilesOfBlocks(const H3Layout& layout) {
  std::vector<int64_t> tiles;
  const int64_t rows = layout.group_heads * layout.head_dim * layout.head_dim;
  int64_t last_head = -1;  // of the block before, if all its rows are of one
  for (int64_t block = 0; block < layout.row_blocks; ++block) {
    const int64_t first = layout.Head(block * kLanes);
    const int64_t last = layout.Head(std::min(rows, (block + 1) * kLanes) - 1);
    const bool shared = first == last && first == last_head;
    tiles.push_back(tiles.empty() ? 0 : tiles.back() + (shared ? 0 : 1));
    last_head = first == last ? first : -1;
  }
  return tiles;
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
  return {.tile = group * channel_blocks + in_group / kLanes, .lane = in_group % kLanes};
}

}  // namespace hippodrome::cpu
