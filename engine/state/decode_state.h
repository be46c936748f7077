// The state of all sequences that a model is decoding: recurrent slots and key/value pages.
#ifndef HIPPODROME_ENGINE_STATE_DECODE_STATE_H_
#define HIPPODROME_ENGINE_STATE_DECODE_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome {

// Tokens of a page of keys and values, and the pages that rows of so many tokens take.
inline constexpr int64_t kPageTokens = 64;
constexpr int64_t PagesFor(int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

// What one sequence holds: a recurrent slot, the same in every H3 layer, and pages in position
// order, the same in every attention layer.
struct SequenceState {
  int64_t slot = -1;
  std::vector<int32_t> pages;
};

// What a model's layers keep of their sequences, one entry per layer.
struct LayerStates {
  std::vector<std::unique_ptr<RecurrentState>> h3;        // null but for H3 layers
  std::vector<std::unique_ptr<KeyValuePages>> attention;  // null but for attention layers
};

// Two pools of fixed size. A sequence's bytes are known before it enters and do not change while it
// runs, so nothing is ever preempted. Not thread-safe.
class DecodeState {
 public:
  // `layers`: of as many slots and pages.
  DecodeState(Backend& backend, LayerStates layers, int64_t slots, int64_t pages);

  // A fresh (all zero) state with `pages` pages; nothing when either pool is short.
  std::optional<SequenceState> Reserve(int64_t pages);
  void Release(SequenceState& state);

  // For tests that fill what nobody holds with values that nobody may see: calls `on_freed` for all
  // that is free now, and then for what is released, before it can be reserved again.
  using OnFreed = std::function<void(const LayerStates&, const SequenceState&)>;
  void WatchFreed(OnFreed on_freed);

  int64_t slots() const { return slots_; }
  int64_t free_slots() const { return static_cast<int64_t>(free_slots_.size()); }
  int64_t pages() const { return pages_; }
  int64_t free_pages() const { return static_cast<int64_t>(free_pages_.size()); }
  // Over all layers.
  int64_t bytes_per_slot() const { return bytes_per_slot_; }
  int64_t bytes_per_page() const { return bytes_per_page_; }

  const LayerStates& layers() const { return layers_; }

 private:
  Backend& backend_;
  LayerStates layers_;
  int64_t slots_;
  int64_t pages_;
  int64_t bytes_per_slot_ = 0;
  int64_t bytes_per_page_ = 0;
  std::vector<int64_t> free_slots_;  // stacks: what was freed last is reused first
  std::vector<int32_t> free_pages_;
  OnFreed on_freed_;  // may be null
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_STATE_DECODE_STATE_H_
