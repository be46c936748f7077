#include <cstring>

#include "kernels/cuda/attention/key_value_pages.h"
#include "kernels/cuda/base/recurrent_slots.h"
#include "kernels/cuda/h3/h3_state.h"
#include "tests/testing/freed_state.h"

namespace hippodrome {
namespace {

// A NaN as bf16 and as f32, and -1 as an index. The emulated device's memory is the host's.
void FillWithNan(void* memory, int64_t bytes) {
  if (bytes > 0) std::memset(memory, 0xff, static_cast<size_t>(bytes));
}

}  // namespace

void FillFreed(Backend& backend, const LayerStates& layers, const SequenceState& freed) {
  backend.Wait();  // for what still reads it
  for (const auto& layer : layers.recurrent) {
    if (layer == nullptr || freed.slot < 0) continue;
    if (const auto* plain = dynamic_cast<const cuda::RecurrentSlots*>(layer.get())) {
      FillWithNan(plain->Slot(freed.slot), plain->bytes_per_slot());
      continue;
    }
    for (const auto& place : static_cast<const cuda::H3Slots&>(*layer).Places(freed.slot)) {
      FillWithNan(place.begin, place.bytes);
    }
  }
  for (const auto& layer : layers.attention) {
    if (layer == nullptr) continue;
    const auto& rows = static_cast<const cuda::PagedRows&>(*layer);
    for (const int32_t page : freed.pages) {
      FillWithNan(static_cast<char*>(rows.data()) + page * rows.bytes_per_page(),
                  rows.bytes_per_page());
    }
  }
}

}  // namespace hippodrome
