#include "engine/state/decode_state.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace hippodrome {

DecodeState::DecodeState(Backend& backend, LayerStates layers, int64_t slots, int64_t pages,
                         int64_t window)
    : backend_(backend),
      layers_(std::move(layers)),
      slots_(slots),
      window_{.window = window},
      references_(pages) {
  for (const auto& state : layers_.recurrent) {
    if (state != nullptr) bytes_per_slot_ += state->bytes_per_slot();
  }
  for (const auto& rows : layers_.attention) {
    if (rows == nullptr) continue;
    bytes_per_page_ += rows->bytes_per_page();
    page_tokens_ = rows->page_tokens();
  }
  assert(window == 0 || page_tokens_ == kWindowBlock);
  // Low numbers on top, so that a lightly used pool touches little memory.
  for (int64_t slot = slots; slot-- > 0;) free_slots_.push_back(slot);
  for (int64_t page = pages; page-- > 0;) free_pages_.push_back(static_cast<int32_t>(page));
}

// REQUIRES: pages has room for them, so that nothing is taken where memory runs out.
void DecodeState::TakePages(int64_t count, std::vector<int32_t>& pages) {
  for (; count > 0; --count) {
    ++references_[free_pages_.back()];
    pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
}

std::optional<SequenceState> DecodeState::Reserve(int64_t pages) {
  if (free_slots_.empty() || free_pages() < pages) return std::nullopt;
  SequenceState state{.slot = free_slots_.back()};
  state.pages.reserve(pages);
  for (const auto& layer : layers_.recurrent) {
    if (layer != nullptr) backend_.ResetSlot(*layer, state.slot);
  }
  free_slots_.pop_back();
  TakePages(pages, state.pages);
  return state;
}

std::optional<SequenceState> DecodeState::Fork(const SequenceState& from, int64_t position,
                                               int64_t pages) {
  const bool paged = bytes_per_page_ > 0;
  const int64_t first = FirstSeen(position);
  const int64_t full = paged ? (position - first) / page_tokens_ : 0;
  const int64_t skipped = PagesOf(from.first_row, first);
  assert(first >= from.first_row && full <= pages && skipped + full <= std::ssize(from.pages));
  if (free_slots_.empty() || free_pages() < pages - full) return std::nullopt;
  SequenceState state{.slot = free_slots_.back(), .first_row = first};
  state.pages.reserve(pages);
  free_slots_.pop_back();
  const auto shared = from.pages.begin() + skipped;
  state.pages.assign(shared, shared + full);
  for (const int32_t page : state.pages) ++references_[page];
  TakePages(pages - full, state.pages);
  for (const auto& layer : layers_.recurrent) {
    if (layer != nullptr) backend_.CopySlot(*layer, from.slot, state.slot);
  }
  if (!paged || position % page_tokens_ == 0) return state;
  for (const auto& rows : layers_.attention) {
    if (rows != nullptr) backend_.CopyPage(*rows, shared[full], state.pages[full]);
  }
  return state;
}

std::optional<SequenceState> DecodeState::Share(const SequenceState& from, int64_t position) {
  if (free_slots_.empty()) return std::nullopt;
  const int64_t first = FirstSeen(position);
  const int64_t skipped = PagesOf(from.first_row, first);
  const int64_t held = PagesOf(first, position);
  assert(first >= from.first_row && skipped + held <= std::ssize(from.pages));
  SequenceState state{.slot = free_slots_.back(), .first_row = first};
  const auto shared = from.pages.begin() + skipped;
  state.pages.assign(shared, shared + held);
  free_slots_.pop_back();
  for (const int32_t page : state.pages) ++references_[page];
  return state;
}

bool DecodeState::Slide(SequenceState& state, int64_t position) {
  const int64_t first = FirstSeen(position);
  const int64_t before = std::min(PagesOf(state.first_row, first), std::ssize(state.pages));
  if (before <= 0) return true;
  const std::span<int32_t> passed(state.pages.data(), static_cast<size_t>(before));
  const int64_t freed = std::count_if(passed.begin(), passed.end(),
                                      [&](int32_t page) { return references_[page] == 1; });
  if (free_pages() + freed < before) return false;
  GiveBack(passed);
  state.pages.erase(state.pages.begin(), state.pages.begin() + before);
  TakePages(before, state.pages);
  state.first_row = first;
  return true;
}

bool DecodeState::Resize(SequenceState& state, int64_t pages) {
  const int64_t more = pages - std::ssize(state.pages);
  if (free_pages() < more) return false;
  if (more > 0) {
    state.pages.reserve(pages);
    TakePages(more, state.pages);
  } else {
    GiveBack(std::span(state.pages).subspan(pages));
    state.pages.resize(pages);
  }
  return true;
}

void DecodeState::GiveBack(std::span<const int32_t> pages) {
  const size_t before = free_pages_.size();
  for (size_t i = pages.size(); i-- > 0;) {
    if (--references_[pages[i]] == 0) free_pages_.push_back(pages[i]);
  }
  if (!on_freed_) return;
  on_freed_(layers_,
            {.pages = {free_pages_.begin() + static_cast<int64_t>(before), free_pages_.end()}});
}

void DecodeState::Release(SequenceState& state) {
  if (state.slot < 0) return;
  GiveBack(state.pages);
  if (on_freed_) on_freed_(layers_, {.slot = state.slot});
  free_slots_.push_back(state.slot);
  state = {};
}

std::vector<LayerArrays> DecodeState::ExportRecurrent(const SequenceState& state, int64_t position,
                                                      const StateLayout& layout) const {
  std::vector<LayerArrays> saved(layout.layers.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    const auto& recurrent = layers_.recurrent[i];
    if (recurrent == nullptr) continue;
    for (const StateArray& array : layout.layers[i].arrays) {
      saved[i].emplace_back(Elements(array.shape));
    }
    const std::vector<std::span<float>> arrays(saved[i].begin(), saved[i].end());
    const int64_t pending = backend_.ExportSlot(*recurrent, state.slot, position, arrays);
    for (size_t j = 0; j < saved[i].size(); ++j) {
      saved[i][j].resize(layout.layers[i].arrays[j].Of(pending).values());
    }
  }
  return saved;
}

std::vector<SavedLayer> DecodeState::Export(const SequenceState& state, int64_t position,
                                            const StateLayout& layout) const {
  const int64_t first = FirstSeen(position);
  std::vector<LayerArrays> recurrent = ExportRecurrent(state, position, layout);
  std::vector<SavedLayer> saved(layout.layers.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    saved[i].arrays = std::move(recurrent[i]);
    if (const auto& rows = layers_.attention[i]; rows != nullptr) {
      const auto size = static_cast<size_t>((position - first) * layout.layers[i].row_width);
      saved[i].keys.resize(size);
      saved[i].values.resize(size);
      backend_.ExportRows(*rows, state.pages, first - state.first_row, position - first,
                          saved[i].keys, saved[i].values);
    }
  }
  return saved;
}

void DecodeState::Import(const SavedState& saved, SequenceState& state) {
  const std::vector<SavedLayer>& layers = saved.layers;
  const int64_t position = saved.position;
  state.first_row = FirstSeen(position);
  const int64_t rows_seen = position - state.first_row;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (const auto& recurrent = layers_.recurrent[i]; recurrent != nullptr) {
      const std::vector<std::span<const float>> arrays(layers[i].arrays.begin(),
                                                       layers[i].arrays.end());
      backend_.ImportSlot(*recurrent, state.slot, position, arrays);
    }
    if (const auto& rows = layers_.attention[i]; rows != nullptr) {
      const auto width = static_cast<int64_t>(layers[i].keys.size()) /
                         std::max<int64_t>(1, position - saved.first_row);
      const auto last = static_cast<size_t>(rows_seen * width);
      backend_.ImportRows(*rows, state.pages, 0, rows_seen, std::span(layers[i].keys).last(last),
                          std::span(layers[i].values).last(last));
    }
  }
}

int64_t DecodeState::bytes_per_step() const {
  int64_t bytes = 0;
  for (const auto& layer : layers_.recurrent) {
    if (layer != nullptr) bytes += layer->bytes_per_step();
  }
  return bytes;
}

int64_t DecodeState::rewind_block() const {
  int64_t block = 0;
  for (const auto& layer : layers_.recurrent) {
    if (layer != nullptr) block = std::gcd(block, layer->rewind_block());
  }
  for (const auto& rows : layers_.attention) {
    if (rows != nullptr) block = std::gcd(block, rows->rewind_block());
  }
  return block;
}

void DecodeState::WatchFreed(OnFreed on_freed) {
  on_freed_ = std::move(on_freed);
  for (const int64_t slot : free_slots_) on_freed_(layers_, {.slot = slot});
  on_freed_(layers_, {.pages = free_pages_});
}

}  // namespace hippodrome
