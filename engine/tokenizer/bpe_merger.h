// Merges the bytes of a word into tokens.
#ifndef HIPPODROME_ENGINE_TOKENIZER_BPE_MERGER_H_
#define HIPPODROME_ENGINE_TOKENIZER_BPE_MERGER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/tokenizer/bpe_vocabulary.h"

namespace hippodrome {

// Keeps its buffers from word to word. Not thread-safe.
class BpeMerger {
 public:
  // `vocabulary` must outlive the merger.
  explicit BpeMerger(const BpeVocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // Appends the tokens of `word`: again and again the pair of adjacent tokens with the lowest rank,
  // the leftmost of these, becomes one token. O(n log n) in the bytes of the word.
  void Append(std::string_view word, std::vector<int32_t>& ids);

 private:
  // A token of the word, in a linked list over the positions of first bytes.
  struct Node {
    int32_t token = 0;
    BpeMerge merge;       // of this token and the next one
    size_t previous = 0;  // kNone at the ends
    size_t next = 0;
  };

  void FindMerge(size_t position);
  void Merge(size_t position);

  const BpeVocabulary& vocabulary_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;  // rank and position of possible merges, some of them outdated
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_BPE_MERGER_H_
