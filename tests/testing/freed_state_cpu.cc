#include <algorithm>

#include "kernels/cpu/attention/key_value_pages.h"
#include "kernels/cpu/base/recurrent_slots.h"
#include "tests/testing/freed_state.h"

namespace hippodrome {
namespace {

// Of f32, bf16 and f16.
void FillWithNan(void* values, int64_t bytes) {
  std::fill_n(static_cast<char*>(values), bytes, static_cast<char>(0xff));
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
    for (const int32_t page : freed.pages) FillWithNan(rows.Page(page), rows.bytes_per_page());
  }
}

}  // namespace hippodrome
