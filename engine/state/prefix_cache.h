// States for sequences, and in what they leave over, the states of prefixes.
#ifndef HIPPODROME_ENGINE_STATE_PREFIX_CACHE_H_
#define HIPPODROME_ENGINE_STATE_PREFIX_CACHE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/state/decode_state.h"
#include "engine/state/prefix_tree.h"

namespace hippodrome {

// The shortest prefix whose state a prompt of so many tokens may begin with.
int64_t LeastPrefix(int64_t prompt_tokens);

struct PrefixCounts {
  int64_t nodes = 0;       // states held now
  int64_t hits = 0;        // prompts that began with one of them
  int64_t misses = 0;      // prompts that looked for one and found none
  int64_t hit_tokens = 0;  // that were not processed again
  int64_t evictions = 0;   // states dropped for want of a slot or of pages
  int64_t bytes = 0;       // of the states held now, pages that several have once
};

// Hands out a DecodeState's room: to sequences first, whatever it takes from the tree; and `nodes`
// slots, and the pages that no sequence has, to a PrefixTree. Sequences must ask for no more than
// there is without the tree; then they are never refused. Not thread-safe.
//
// States enter the tree that prefill left behind a multiple of kCaptureTokens tokens, all of them
// taken in on the absolute grid, so that a hit changes no bit of what follows. Of a prompt of
// kTransformTokens and more there are none before that many tokens, and it takes none, since the
// backend may transform those tokens together; the others serve shorter prompts.
class PrefixCache {
 public:
  // A node at least every `interval` tokens of a prompt. `nodes` 0: there is no tree.
  PrefixCache(DecodeState& state, int64_t nodes, int64_t interval)
      : state_(state),
        most_nodes_(nodes),
        interval_(interval),
        page_nodes_(nodes == 0 ? 0 : state.pages()) {}

  // ---- Sequences. REQUIRES: there is room, but for the tree. --------------------------------

  SequenceState Reserve(int64_t pages);
  SequenceState Fork(const SequenceState& from, int64_t position, int64_t pages);
  void Resize(SequenceState& state, int64_t pages);
  void Slide(SequenceState& state, int64_t position);

  // ---- The tree ------------------------------------------------------------------------------

  struct Hit {
    SequenceState state;   // a fork of the node's, with the pages asked for
    int64_t position = 0;  // tokens in it
  };
  // The deepest state of at most `most` tokens that `prompt` begins with. REQUIRES: most < prompt
  // size, for the logits of the last token. None where there is no room for sequences but in that
  // node.
  std::optional<Hit> Take(const std::string& salt, std::span<const int32_t> prompt, int64_t most,
                          int64_t pages);

  // Where the tree wants states of a prompt that goes on from `position`, ascending: at the last
  // multiple of kCaptureTokens, where it leaves the prompts that the tree knows, every interval,
  // and at `marks`, rounded down; but where it has one.
  std::vector<int64_t> Wanted(const std::string& salt, std::span<const int32_t> prompt,
                              int64_t position, std::span<const int64_t> marks);
  // A state to capture that of `from` in, with its pages; none where there is no slot for it. Must
  // end in Keep() or Drop().
  std::optional<SequenceState> Capture(const SequenceState& from, int64_t position);
  // REQUIRES: captured holds the state after `prefix`.
  void Keep(const std::string& salt, std::span<const int32_t> prefix, SequenceState captured);
  void Drop(SequenceState captured);

  // Gives back what the tree holds.
  void Clear();
  PrefixCounts counts() const;

 private:
  bool Evict();
  void CountPages(const SequenceState& node, int32_t more);

  DecodeState& state_;
  int64_t most_nodes_;
  int64_t interval_;
  int64_t captures_ = 0;  // not yet ended
  PrefixTree tree_;
  PrefixCounts counts_;
  std::vector<int32_t> page_nodes_;  // nodes that have the page
  int64_t pages_ = 0;                // that nodes have
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_STATE_PREFIX_CACHE_H_
