#include "kernels/cpu/h3/h3_convolution_rows.h"

#include <algorithm>

#include "kernels/cpu/base/tensor_memory.h"
#include "kernels/cpu/h3/h3_rows.h"

namespace hippodrome::cpu {
namespace {

// Whether each group is one tile, so that the groups are neighbouring tiles.
bool AreTiles(const H3Layout& layout, const GroupRun& groups) {
  return layout.channel_blocks == 1 && layout.Channels(groups.end - 1) == kLanes &&
         layout.Channels(groups.begin) == kLanes;
}

TileRun Tiles(const GroupRun& groups, float* panel) {
  return {panel, groups.end - groups.begin, groups.distance};
}

bool IsPermuted(const H3Layout& layout) {
  return layout.head_dim > 1 && layout.output_order == H3OutputOrder::kD2Head;
}

// Calls visit(column, of_panel) for each channel of a group, in the layer's output order.
template <typename Visit>
void ForEachOutput(const H3Layout& layout, int64_t group, float* panel, int64_t steps,
                   const Visit& visit) {
  for (int64_t c = 0; c < layout.Channels(group); ++c) {
    visit(layout.OutputChannel(layout.FirstChannel(group) + c),
          panel + c / kLanes * steps * kLanes + c % kLanes);
  }
}

void StoreBlock(TileRun block, int64_t width, int64_t steps, StoreForm form, float* to,
                int64_t stride) {
  if (width == kLanes) {
    const bool aligned = reinterpret_cast<uintptr_t>(to) % (kLanes * sizeof(float)) == 0;
    if (form == StoreForm::kStream && !aligned) form = StoreForm::kReplace;
    return TilesToRows(block, steps, form, to, stride);
  }
  for (int64_t t = 0; t < steps; ++t) {
    float* row = to + t * stride;
    const float* from = block.first + t * kLanes;
    for (int64_t i = 0; i < width; ++i) {
      row[i] = (form == StoreForm::kAdd ? row[i] : 0.0f) + from[i];
    }
  }
}

}  // namespace

void LoadPanels(const H3Layout& layout, const GroupRun& groups, Tensor from, float* panel) {
  const auto columns = [&](int64_t group) {
    return TileRows{F32Row(from, 0) + layout.FirstChannel(group), from.stride};
  };
  if (AreTiles(layout, groups)) {
    return RowsToTiles(columns(groups.begin), from.rows, Tiles(groups, panel));
  }
  for (int64_t g = groups.begin; g < groups.end; ++g, panel += groups.distance) {
    LoadPanel(layout, g, columns(g), from.rows, panel);
  }
}

void LoadOutputPanels(const H3Layout& layout, const GroupRun& groups, Tensor from, float* panel) {
  if (!IsPermuted(layout)) return LoadPanels(layout, groups, from, panel);
  for (int64_t g = groups.begin; g < groups.end; ++g, panel += groups.distance) {
    std::fill_n(panel, layout.channel_blocks * from.rows * kLanes, 0.0f);
    ForEachOutput(layout, g, panel, from.rows, [&](int64_t column, float* lane) {
      for (int64_t t = 0; t < from.rows; ++t) lane[t * kLanes] = F32Row(from, t)[column];
    });
  }
}

void StorePanels(const H3Layout& layout, const GroupRun& groups, float* panel, StoreForm form,
                 Tensor to) {
  if (AreTiles(layout, groups)) {
    return TilesToRows(Tiles(groups, panel), to.rows, form,
                       F32Row(to, 0) + layout.FirstChannel(groups.begin), to.stride);
  }
  for (int64_t g = groups.begin; g < groups.end; ++g, panel += groups.distance) {
    for (int64_t c = 0; c < layout.Channels(g); c += kLanes) {
      StoreBlock({.first = panel + c * to.rows}, std::min(layout.Channels(g) - c, kLanes), to.rows,
                 form, F32Row(to, 0) + layout.FirstChannel(g) + c, to.stride);
    }
  }
}

void StoreOutputPanels(const H3Layout& layout, const GroupRun& groups, float* panel, StoreForm form,
                       Tensor to) {
  if (!IsPermuted(layout)) return StorePanels(layout, groups, panel, form, to);
  for (int64_t g = groups.begin; g < groups.end; ++g, panel += groups.distance) {
    StorePanel(layout, g, panel, to.rows, F32Row(to, 0), to.stride);
  }
}

StoreForm FormFor(const Tensor& matrix) {
  constexpr int64_t kLargest = int64_t{2} << 20;  // bytes: a second-level cache
  constexpr int64_t kLine = 64;
  const int64_t row = matrix.stride * static_cast<int64_t>(sizeof(float));
  const bool aligned = row % kLine == 0 && reinterpret_cast<uintptr_t>(matrix.data) % kLine == 0;
  return aligned && matrix.rows * row > kLargest ? StoreForm::kStream : StoreForm::kReplace;
}

void ContractKeys(const H3Layout& layout, int64_t group, int64_t row_block, const float* v,
                  const float* du, int64_t steps, float* dk) {
  const int64_t first = row_block * kLanes;
  const int64_t count = std::clamp<int64_t>(layout.Rows(group) - first, 0, kLanes);
  const auto offset = [steps](int64_t channel) {
    return channel / kLanes * steps * kLanes + channel % kLanes;
  };
  for (int64_t i = 0; i < count; ++i) {
    const float* value = v + offset(layout.ValueChannel(first + i));
    float* key = dk + offset(layout.KeyChannel(first + i));
    for (int64_t t = 0; t < steps; ++t) {
      key[t * kLanes] += du[t * kLanes + i] * value[t * kLanes];
    }
  }
}

}  // namespace hippodrome::cpu
