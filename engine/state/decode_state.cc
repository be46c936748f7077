#include "engine/state/decode_state.h"

#include <utility>

namespace hippodrome {

DecodeState::DecodeState(Backend& backend, LayerStates layers, int64_t slots, int64_t pages)
    : backend_(backend), layers_(std::move(layers)), slots_(slots), pages_(pages) {
  for (const auto& state : layers_.h3) {
    if (state != nullptr) bytes_per_slot_ += state->bytes_per_slot();
  }
  for (const auto& rows : layers_.attention) {
    if (rows != nullptr) bytes_per_page_ += rows->bytes_per_page();
  }
  // Low numbers on top, so that a lightly used pool touches little memory.
  for (int64_t slot = slots; slot-- > 0;) free_slots_.push_back(slot);
  for (int64_t page = pages; page-- > 0;) free_pages_.push_back(static_cast<int32_t>(page));
}

std::optional<SequenceState> DecodeState::Reserve(int64_t pages) {
  if (free_slots_.empty() || free_pages() < pages) return std::nullopt;
  SequenceState state{.slot = free_slots_.back()};
  state.pages.assign(free_pages_.rbegin(), free_pages_.rbegin() + pages);
  for (const auto& layer : layers_.h3) {
    if (layer != nullptr) backend_.ResetSlot(*layer, state.slot);
  }
  // Nothing is taken before what may run out of memory is done.
  free_slots_.pop_back();
  free_pages_.resize(free_pages_.size() - pages);
  return state;
}

void DecodeState::Release(SequenceState& state) {
  if (on_freed_) on_freed_(layers_, state);
  free_slots_.push_back(state.slot);
  free_pages_.insert(free_pages_.end(), state.pages.rbegin(), state.pages.rend());
  state = {};
}

void DecodeState::WatchFreed(OnFreed on_freed) {
  on_freed_ = std::move(on_freed);
  for (const int64_t slot : free_slots_) on_freed_(layers_, {.slot = slot});
  on_freed_(layers_, {.pages = free_pages_});
}

}  // namespace hippodrome
