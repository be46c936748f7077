#include "engine/initialization/position_table.h"

#include <algorithm>
#include <cassert>

namespace hippodrome {

std::vector<float> TilePositions(std::span<const float> table, int64_t d, int64_t positions) {
  assert(d >= 1 && !table.empty() && std::ssize(table) % d == 0);
  std::vector<float> tiled(static_cast<size_t>(positions * d));
  for (size_t begin = 0; begin < tiled.size(); begin += table.size()) {
    const size_t count = std::min(table.size(), tiled.size() - begin);
    std::copy_n(table.begin(), count, tiled.begin() + static_cast<int64_t>(begin));
  }
  return tiled;
}

}  // namespace hippodrome
