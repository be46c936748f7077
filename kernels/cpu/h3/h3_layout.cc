#include "kernels/cpu/h3/h3_layout.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/h3/h3_layout.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/bf16_lanes-inl.h"
#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// Rows lie apart as no processor's own prefetching follows.
HWY_INLINE void FetchRow(const TileRows& rows, int64_t t, int64_t steps) {
  constexpr int64_t kAhead = 16;
  if (t + kAhead < steps) hwy::Prefetch(rows.data + (t + kAhead) * rows.stride);
}

// Between rows and neighbouring tiles, one for each group: memory comes in pairs of cache lines.
void RowsToTiles(TileRows from, int64_t steps, GroupRun groups, float* tiles) {
  for (int64_t t = 0; t < steps; ++t) {
    FetchRow(from, t, steps);
    const float* row = from.data + t * from.stride;
    for (int64_t i = 0; i < groups.end - groups.begin; ++i, row += kTileChannels) {
      float* tile = tiles + i * groups.distance + t * kTileChannels;
      for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
        hn::Store(hn::LoadU(D(), row + lane), D(), tile + lane);
      }
    }
  }
}

template <StoreForm kForm>
HWY_INLINE void Store(GroupRun groups, const float* tiles, int64_t steps, float* to,
                      int64_t stride) {
  for (int64_t t = 0; t < steps; ++t, to += stride) {
    float* row = to;
    for (int64_t i = 0; i < groups.end - groups.begin; ++i, row += kTileChannels) {
      const float* tile = tiles + i * groups.distance + t * kTileChannels;
      for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
        const auto value = hn::Load(D(), tile + lane);
        if constexpr (kForm == StoreForm::kReplace) hn::StoreU(value, D(), row + lane);
        if constexpr (kForm == StoreForm::kStream) hn::Stream(value, D(), row + lane);
        if constexpr (kForm == StoreForm::kAdd) {
          hn::StoreU(hn::Add(hn::LoadU(D(), row + lane), value), D(), row + lane);
        }
      }
    }
  }
}

void TilesToRows(GroupRun groups, const float* tiles, int64_t steps, StoreForm form, float* to,
                 int64_t stride) {
  switch (form) {
    case StoreForm::kReplace:
      return Store<StoreForm::kReplace>(groups, tiles, steps, to, stride);
    case StoreForm::kAdd:
      return Store<StoreForm::kAdd>(groups, tiles, steps, to, stride);
    case StoreForm::kStream:
      return Store<StoreForm::kStream>(groups, tiles, steps, to, stride);
  }
}

void MultiplyRows(TileRows a, TileRows b, int64_t steps, float* out, int64_t out_stride) {
  for (int64_t t = 0; t < steps; ++t) {
    FetchRow(b, t, steps);
    for (int64_t lane = 0; lane < kTileChannels; lane += kLanes) {
      const V x = hn::LoadU(D(), a.data + t * a.stride + lane);
      const V y = hn::LoadU(D(), b.data + t * b.stride + lane);
      hn::StoreU(hn::Mul(x, y), D(), out + t * out_stride + lane);
    }
  }
}

void RoundRows(int64_t rows, float* values) {
  for (int64_t i = 0; i < rows * kTileChannels; i += kLanes) {
    hn::Store(NearestBF16(D(), hn::Load(D(), values + i)), D(), values + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(RowsToTiles);
HWY_EXPORT(TilesToRows);
HWY_EXPORT(MultiplyRows);
HWY_EXPORT(RoundRows);

void MultiplyRows(TileRows a, TileRows b, int64_t steps, float* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyRows)(a, b, steps, out, out_stride);
}

namespace {

void RowsToTiles(TileRows from, int64_t steps, GroupRun groups, float* tiles) {
  HWY_DYNAMIC_DISPATCH(RowsToTiles)(from, steps, groups, tiles);
}

void TilesToRows(GroupRun groups, const float* tiles, int64_t steps, StoreForm form, float* to,
                 int64_t stride) {
  HWY_DYNAMIC_DISPATCH(TilesToRows)(groups, tiles, steps, form, to, stride);
}

constexpr GroupRun kOneGroup = {.begin = 0, .end = 1, .distance = 0};

// Offsets in a panel of the channels that the rows of a block use.
struct RowOffsets {
  RowOffsets(const H3Layout& layout, int64_t group, int64_t row_block, int64_t steps) {
    const int64_t first = row_block * kTileChannels;
    count = std::clamp<int64_t>(layout.Rows(group) - first, 0, kTileChannels);
    const auto offset = [steps](int64_t channel) {
      return channel / kTileChannels * steps * kTileChannels + channel % kTileChannels;
    };
    for (int64_t i = 0; i < count; ++i) {
      key[static_cast<size_t>(i)] = offset(layout.KeyChannel(first + i));
      value[static_cast<size_t>(i)] = offset(layout.ValueChannel(first + i));
    }
  }

  int64_t count = 0;
  std::array<int64_t, kTileChannels> key;
  std::array<int64_t, kTileChannels> value;
};

// Whether each group is one tile, so that the groups are neighbouring tiles.
bool AreTiles(const H3Layout& layout, const GroupRun& groups) {
  return layout.channel_blocks == 1 && layout.Channels(groups.end - 1) == kTileChannels &&
         layout.Channels(groups.begin) == kTileChannels;
}

bool IsPermuted(const H3Layout& layout) {
  return layout.head_dim > 1 && layout.output_order == H3OutputOrder::kD2Head;
}

// Calls visit(column, of_panel) for each channel of a group, in the layer's output order.
template <typename Float, typename Visit>
void ForEachOutput(const H3Layout& layout, int64_t group, Float* panel, int64_t steps,
                   const Visit& visit) {
  for (int64_t c = 0; c < layout.Channels(group); ++c) {
    visit(layout.OutputChannel(layout.FirstChannel(group) + c),
          panel + c / kTileChannels * steps * kTileChannels + c % kTileChannels);
  }
}

void StoreBlock(const float* block, int64_t width, int64_t steps, StoreForm form, float* to,
                int64_t stride) {
  if (width == kTileChannels) {
    const bool aligned = reinterpret_cast<uintptr_t>(to) % (kTileChannels * sizeof(float)) == 0;
    if (form == StoreForm::kStream && !aligned) form = StoreForm::kReplace;
    return TilesToRows(kOneGroup, block, steps, form, to, stride);
  }
  for (int64_t t = 0; t < steps; ++t) {
    float* row = to + t * stride;
    const float* from = block + t * kTileChannels;
    for (int64_t i = 0; i < width; ++i) {
      row[i] = (form == StoreForm::kAdd ? row[i] : 0.0f) + from[i];
    }
  }
}

}  // namespace

void LoadBlock(TileRows from, int64_t width, int64_t steps, float* block) {
  if (width == kTileChannels) return RowsToTiles(from, steps, kOneGroup, block);
  for (int64_t t = 0; t < steps; ++t) {
    std::fill_n(block + t * kTileChannels, kTileChannels, 0.0f);
    std::copy_n(from.data + t * from.stride, width, block + t * kTileChannels);
  }
}

template <>
void RoundTo<float>(int64_t /*rows*/, float* /*values*/) {}
template <>
void RoundTo<BF16>(int64_t rows, float* values) {
  HWY_DYNAMIC_DISPATCH(RoundRows)(rows, values);
}

void LoadPanel(const H3Layout& layout, int64_t group, TileRows from, int64_t steps, float* panel) {
  for (int64_t c = 0; c < layout.channel_blocks; ++c) {
    const int64_t width =
        std::clamp<int64_t>(layout.Channels(group) - c * kTileChannels, 0, kTileChannels);
    LoadBlock({from.data + c * kTileChannels, from.stride}, width, steps,
              panel + c * steps * kTileChannels);
  }
}

void ExpandRows(const H3Layout& layout, int64_t group, int64_t row_block, const float* k,
                const float* v, int64_t steps, float* u) {
  if (layout.head_dim == 1) {
    return MultiplyRows({k, kTileChannels}, {v, kTileChannels}, steps, u, kTileChannels);
  }
  const RowOffsets rows(layout, group, row_block, steps);
  for (int64_t t = 0; t < steps; ++t, k += kTileChannels, v += kTileChannels, u += kTileChannels) {
    for (int64_t i = 0; i < rows.count; ++i) {
      u[i] = k[rows.key[static_cast<size_t>(i)]] * v[rows.value[static_cast<size_t>(i)]];
    }
    std::fill(u + rows.count, u + kTileChannels, 0.0f);
  }
}

void ContractRows(const H3Layout& layout, int64_t group, int64_t row_block, const float* q,
                  const float* y, int64_t steps, float* o) {
  const RowOffsets rows(layout, group, row_block, steps);
  for (int64_t t = 0; t < steps; ++t, q += kTileChannels, y += kTileChannels, o += kTileChannels) {
    for (int64_t i = 0; i < rows.count; ++i) {
      o[rows.value[static_cast<size_t>(i)]] += q[rows.key[static_cast<size_t>(i)]] * y[i];
    }
  }
}

void StorePanel(const H3Layout& layout, int64_t group, const float* panel, int64_t steps, float* to,
                int64_t to_stride) {
  ForEachOutput(layout, group, panel, steps, [&](int64_t column, const float* lane) {
    for (int64_t t = 0; t < steps; ++t) to[t * to_stride + column] = lane[t * kTileChannels];
  });
}

void LoadPanels(const H3Layout& layout, const GroupRun& groups, Tensor from, float* panels) {
  const auto columns = [&](int64_t group) {
    return TileRows{F32Row(from, 0) + layout.FirstChannel(group), from.stride};
  };
  if (AreTiles(layout, groups)) {
    return RowsToTiles(columns(groups.begin), from.rows, groups, panels);
  }
  for (int64_t g = groups.begin; g < groups.end; ++g, panels += groups.distance) {
    LoadPanel(layout, g, columns(g), from.rows, panels);
  }
}

void LoadOutputPanels(const H3Layout& layout, const GroupRun& groups, Tensor from, float* panels) {
  if (!IsPermuted(layout)) return LoadPanels(layout, groups, from, panels);
  for (int64_t g = groups.begin; g < groups.end; ++g, panels += groups.distance) {
    std::fill_n(panels, layout.channel_blocks * from.rows * kTileChannels, 0.0f);
    ForEachOutput(layout, g, panels, from.rows, [&](int64_t column, float* lane) {
      for (int64_t t = 0; t < from.rows; ++t) lane[t * kTileChannels] = F32Row(from, t)[column];
    });
  }
}

void StorePanels(const H3Layout& layout, const GroupRun& groups, const float* panels,
                 StoreForm form, Tensor to) {
  if (AreTiles(layout, groups)) {
    return TilesToRows(groups, panels, to.rows, form,
                       F32Row(to, 0) + layout.FirstChannel(groups.begin), to.stride);
  }
  for (int64_t g = groups.begin; g < groups.end; ++g, panels += groups.distance) {
    for (int64_t c = 0; c < layout.Channels(g); c += kTileChannels) {
      StoreBlock(panels + c * to.rows, std::min(layout.Channels(g) - c, kTileChannels), to.rows,
                 form, F32Row(to, 0) + layout.FirstChannel(g) + c, to.stride);
    }
  }
}

void StoreOutputPanels(const H3Layout& layout, const GroupRun& groups, const float* panels,
                       StoreForm form, Tensor to) {
  if (!IsPermuted(layout)) return StorePanels(layout, groups, panels, form, to);
  for (int64_t g = groups.begin; g < groups.end; ++g, panels += groups.distance) {
    StorePanel(layout, g, panels, to.rows, F32Row(to, 0), to.stride);
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
  const RowOffsets rows(layout, group, row_block, steps);
  for (int64_t i = 0; i < rows.count; ++i) {
    const float* value = v + rows.value[static_cast<size_t>(i)];
    float* key = dk + rows.key[static_cast<size_t>(i)];
    for (int64_t t = 0; t < steps; ++t) {
      key[t * kTileChannels] += du[t * kTileChannels + i] * value[t * kTileChannels];
    }
  }
}

void FinishStreams() { hwy::FlushStream(); }

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
