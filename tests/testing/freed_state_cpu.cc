#include <algorithm>
#include <limits>

#include "kernels/cpu/attention/key_value_pages.h"
#include "kernels/cpu/base/recurrent_slots.h"
#include "tests/testing/freed_state.h"

namespace hippodrome {
namespace {

void FillWithNan(float* values, int64_t bytes) {
  std::fill_n(values, bytes / static_cast<int64_t>(sizeof(float)),
              std::numeric_limits<float>::signaling_NaN());
}

}  // namespace

void FillFreed(Backend&, const LayerStates& layers, const SequenceState& freed) {
  for (const auto& layer : layers.recurrent) {
    if (layer == nullptr || freed.slot < 0) continue;
    const auto& slots = static_cast<const cpu::RecurrentSlots&>(*layer);
    FillWithNan(slots.Slot(freed.slot), slots.bytes_per_slot());
  }
  for (const auto& layer : layers.attention) {
    if (layer == nullptr) continue;
    const auto& rows = static_cast<const cpu::PagedRows&>(*layer);
    for (const int32_t page : freed.pages)
      FillWithNan(rows.Key(&page, 0, 0), rows.bytes_per_page());
  }
}

}  // namespace hippodrome
