// States of prefixes of prompts, by their tokens.
#ifndef HIPPODROME_ENGINE_STATE_PREFIX_TREE_H_
#define HIPPODROME_ENGINE_STATE_PREFIX_TREE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/state/decode_state.h"

namespace hippodrome {

// A radix tree over token ids for each salt. A node may hold the state after its tokens; leaves do.
// Knows no backend: who takes a state out gives it back to its DecodeState. Not thread-safe.
class PrefixTree {
 public:
  PrefixTree();
  ~PrefixTree();

  struct Found {
    int64_t position = 0;                  // tokens of the deepest node that holds a state; 0: none
    const SequenceState* state = nullptr;  // its, valid until the next Put() or eviction
    int64_t common = 0;                    // tokens of the prompt that the tree knows
  };
  // The deepest node that holds a state, is a prefix of `prompt` and has `least` to `most` tokens.
  Found Find(const std::string& salt, std::span<const int32_t> prompt, int64_t least,
             int64_t most) const;
  // Counts as the latest use of the state after all of `prefix`, if there is one; whether there is.
  bool Touch(const std::string& salt, std::span<const int32_t> prefix);

  // Adds the state after all of `prefix`. REQUIRES: prefix is not empty, !Touch(salt, prefix).
  void Put(const std::string& salt, std::span<const int32_t> prefix, SequenceState state);
  // Takes out the state whose last use is longest ago; nothing when there is none.
  std::optional<SequenceState> TakeOldest();

  int64_t size() const { return static_cast<int64_t>(by_use_.size()); }  // states

 private:
  struct Node;
  using Child = std::unique_ptr<Node>;

  const Node* Walk(const std::string& salt, std::span<const int32_t> prefix) const;
  static Child& Split(Child& node, int64_t tokens);
  void Prune(Node* node);
  static void Join(Node* node);

  std::map<std::string, Child> roots_;  // by salt
  std::list<Node*> by_use_;             // of nodes with a state, the oldest first
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_STATE_PREFIX_TREE_H_
