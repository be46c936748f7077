// The state of all sequences that a model is decoding: recurrent slots and key/value pages.
#ifndef HIPPODROME_ENGINE_STATE_DECODE_STATE_H_
#define HIPPODROME_ENGINE_STATE_DECODE_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/state/saved_state.h"
#include "kernels/backend.h"

namespace hippodrome {

// Tokens of a page of keys and values, and the pages that rows of so many tokens take.
inline constexpr int64_t kPageTokens = 64;
constexpr int64_t PagesFor(int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

// What one sequence holds: a recurrent slot, the same in every layer without attention, and pages
// in position order, the same in every attention layer.
struct SequenceState {
  int64_t slot = -1;
  std::vector<int32_t> pages;
  int64_t first_row = 0;  // position of the first row of the first page; > 0 in a window alone
};

// What a model's layers keep of their sequences, one entry per layer.
struct LayerStates {
  std::vector<std::unique_ptr<RecurrentState>> recurrent;  // null for attention layers
  std::vector<std::unique_ptr<KeyValuePages>> attention;   // null but for attention layers
};

// Two pools of fixed size: slots, each of one state, and pages, which states may share: a page is
// free when no state has it. A state's bytes do not change but by Resize(), so nothing is ever
// preempted: what is before the window of a state makes room for what comes. What needs room and
// finds none gives nothing, and changes nothing. Not thread-safe.
class DecodeState {
 public:
  // `layers`: of as many slots and pages. `window`: AttentionShape::window of all attention layers.
  // REQUIRES: pages of kWindowBlock tokens where there is one.
  DecodeState(Backend& backend, LayerStates layers, int64_t slots, int64_t pages,
              int64_t window = 0);

  int64_t window() const { return window_.window; }
  // The first row that the token at `position` sees: rows before it are needed no more.
  int64_t FirstSeen(int64_t position) const { return window_.FirstSeen(position); }

  // A fresh (all zero) state with `pages` pages.
  std::optional<SequenceState> Reserve(int64_t pages);
  // A state that goes on after `position` tokens where `from` is, or was: its slot is copied, full
  // pages are shared, a page in part is copied, and the others, `pages` in all, are fresh.
  // What the next token does not see is left out. REQUIRES: from's slot is at `position`, from has
  // the rows that it sees; pages hold them.
  std::optional<SequenceState> Fork(const SequenceState& from, int64_t position, int64_t pages);
  // A state to be read and forked alone: with a slot whose content is unspecified until it is
  // written (see PrefillCapture), and the pages of from's first `position` rows that the next token
  // sees, all shared. The rows of those positions never change; later ones of the last page may.
  std::optional<SequenceState> Share(const SequenceState& from, int64_t position);
  // Gives back the pages before those that the token at `position`, the next one, sees, for as many
  // fresh ones at the end; false where there are not enough.
  bool Slide(SequenceState& state, int64_t position);
  // Fresh pages at its end, or fewer pages; false where there are not enough.
  bool Resize(SequenceState& state, int64_t pages);
  // Gives back the slot, and the pages that nobody else has. A state without a slot is none.
  void Release(SequenceState& state);

  // What the next token needs of `state` after `position` tokens, as `layout`, that of the model,
  // says: rows from FirstSeen(position) on. Waits for pending work.
  std::vector<SavedLayer> Export(const SequenceState& state, int64_t position,
                                 const StateLayout& layout) const;
  // The recurrent part of that alone, by layer.
  std::vector<LayerArrays> ExportRecurrent(const SequenceState& state, int64_t position,
                                           const StateLayout& layout) const;
  // REQUIRES: CheckState() is OK with `saved` for the model of these layers, and the fresh `state`
  // has pages of the rows that the next token sees.
  void Import(const SavedState& saved, SequenceState& state);

  // For tests that fill what nobody holds with values that nobody may see: calls `on_freed` for all
  // that is free now, and then for what is released, before it can be reserved again.
  using OnFreed = std::function<void(const LayerStates&, const SequenceState&)>;
  void WatchFreed(OnFreed on_freed);

  int64_t slots() const { return slots_; }
  int64_t free_slots() const { return static_cast<int64_t>(free_slots_.size()); }
  int64_t pages() const { return std::ssize(references_); }
  int64_t free_pages() const { return static_cast<int64_t>(free_pages_.size()); }
  // Over all layers.
  int64_t bytes_per_slot() const { return bytes_per_slot_; }
  int64_t bytes_per_page() const { return bytes_per_page_; }
  // RecurrentState::bytes_per_step() over all layers.
  int64_t bytes_per_step() const;
  // RecurrentState::rewind_block() of all layers together.
  int64_t rewind_block() const;

  const LayerStates& layers() const { return layers_; }

 private:
  void TakePages(int64_t count, std::vector<int32_t>& pages);
  void GiveBack(std::span<const int32_t> pages);
  // Pages of rows [first, end).
  int64_t PagesOf(int64_t first, int64_t end) const {
    return bytes_per_page_ > 0 ? (end - first + page_tokens_ - 1) / page_tokens_ : 0;
  }

  Backend& backend_;
  LayerStates layers_;
  int64_t slots_;
  AttentionShape window_;  // its window alone
  int64_t page_tokens_ = kPageTokens;
  int64_t bytes_per_slot_ = 0;
  int64_t bytes_per_page_ = 0;
  std::vector<int32_t> references_;  // states that have the page
  // Stacks with room for all, so that giving back needs no memory: what was freed last is reused
  // first.
  std::vector<int64_t> free_slots_;
  std::vector<int32_t> free_pages_;
  OnFreed on_freed_;  // may be null
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_STATE_DECODE_STATE_H_
