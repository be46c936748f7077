#include "kernels/cpu/h3/h3_copy_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/h3/h3_copy_rows.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = HWY_CAPPED(float, kLanes);
constexpr int64_t kWidth = hn::MaxLanes(D());

void RowsToTiles(TileRows from, int64_t steps, TileRun to) {
  for (int64_t t = 0; t < steps; ++t) {
    const float* row = from.data + t * from.stride;
    for (int64_t i = 0; i < to.count; ++i, row += kLanes) {
      float* tile = to.first + i * to.distance + t * kLanes;
      for (int64_t lane = 0; lane < kLanes; lane += kWidth) {
        hn::Store(hn::LoadU(D(), row + lane), D(), tile + lane);
      }
    }
  }
}

template <StoreForm kForm>
HWY_INLINE void Store(TileRun from, int64_t steps, float* to, int64_t stride) {
  for (int64_t t = 0; t < steps; ++t, to += stride) {
    float* row = to;
    for (int64_t i = 0; i < from.count; ++i, row += kLanes) {
      const float* tile = from.first + i * from.distance + t * kLanes;
      for (int64_t lane = 0; lane < kLanes; lane += kWidth) {
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

void TilesToRows(TileRun from, int64_t steps, StoreForm form, float* to, int64_t stride) {
  switch (form) {
    case StoreForm::kReplace:
      return Store<StoreForm::kReplace>(from, steps, to, stride);
    case StoreForm::kAdd:
      return Store<StoreForm::kAdd>(from, steps, to, stride);
    case StoreForm::kStream:
      return Store<StoreForm::kStream>(from, steps, to, stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(RowsToTiles);
HWY_EXPORT(TilesToRows);

void RowsToTiles(TileRows from, int64_t steps, TileRun to) {
  HWY_DYNAMIC_DISPATCH(RowsToTiles)(from, steps, to);
}

void TilesToRows(TileRun from, int64_t steps, StoreForm form, float* to, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(TilesToRows)(from, steps, form, to, stride);
}

void FinishStreams() { hwy::FlushStream(); }

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
