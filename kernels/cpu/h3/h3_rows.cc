#include "kernels/cpu/h3/h3_rows.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/h3/h3_copy_rows.h"

namespace hippodrome::cpu {
namespace {

// Offsets in a panel of the channels that the rows of a block use.
struct RowOffsets {
  RowOffsets(const H3Layout& layout, int64_t group, int64_t row_block, int64_t steps) {
    const int64_t first = row_block * kLanes;
    count = std::clamp<int64_t>(layout.Rows(group) - first, 0, kLanes);
    const auto offset = [steps](int64_t channel) {
      return channel / kLanes * steps * kLanes + channel % kLanes;
    };
    for (int64_t i = 0; i < count; ++i) {
      key[static_cast<size_t>(i)] = offset(layout.KeyChannel(first + i));
      value[static_cast<size_t>(i)] = offset(layout.ValueChannel(first + i));
    }
  }

  int64_t count = 0;
  std::array<int64_t, kLanes> key;
  std::array<int64_t, kLanes> value;
};

}  // namespace

void LoadBlock(TileRows from, int64_t width, int64_t steps, float* block) {
  if (width == kLanes) return RowsToTiles(from, steps, {.first = block});
  for (int64_t t = 0; t < steps; ++t) {
    std::fill_n(block + t * kLanes, kLanes, 0.0f);
    std::copy_n(from.data + t * from.stride, width, block + t * kLanes);
  }
}

void LoadPanel(const H3Layout& layout, int64_t group, TileRows from, int64_t steps, float* panel) {
  for (int64_t c = 0; c < layout.channel_blocks; ++c) {
    const int64_t width = std::clamp<int64_t>(layout.Channels(group) - c * kLanes, 0, kLanes);
    LoadBlock({from.data + c * kLanes, from.stride}, width, steps, panel + c * steps * kLanes);
  }
}

void ExpandRows(const H3Layout& layout, int64_t group, int64_t row_block, const float* k,
                const float* v, int64_t steps, float* u) {
  if (layout.head_dim == 1) return MultiplyRows({k, kLanes}, {v, kLanes}, steps, u, kLanes);
  const RowOffsets rows(layout, group, row_block, steps);
  for (int64_t t = 0; t < steps; ++t, k += kLanes, v += kLanes, u += kLanes) {
    for (int64_t i = 0; i < rows.count; ++i) {
      u[i] = k[rows.key[static_cast<size_t>(i)]] * v[rows.value[static_cast<size_t>(i)]];
    }
    std::fill(u + rows.count, u + kLanes, 0.0f);
  }
}

void ContractRows(const H3Layout& layout, int64_t group, int64_t row_block, const float* q,
                  const float* y, int64_t steps, float* o) {
  const RowOffsets rows(layout, group, row_block, steps);
  for (int64_t t = 0; t < steps; ++t, q += kLanes, y += kLanes, o += kLanes) {
    for (int64_t i = 0; i < rows.count; ++i) {
      o[rows.value[static_cast<size_t>(i)]] += q[rows.key[static_cast<size_t>(i)]] * y[i];
    }
  }
}

void StorePanel(const H3Layout& layout, int64_t group, const float* panel, int64_t steps, float* to,
                int64_t to_stride) {
  for (int64_t c = 0; c < layout.Channels(group); ++c) {
    const float* from = panel + c / kLanes * steps * kLanes + c % kLanes;
    float* column = to + layout.OutputChannel(layout.FirstChannel(group) + c);
    for (int64_t t = 0; t < steps; ++t) column[t * to_stride] = from[t * kLanes];
  }
}

}  // namespace hippodrome::cpu
