// The search for merges of byte-pair encoding: which two adjacent symbols are together most often.
#ifndef HIPPODROME_TOOLS_TRAIN_TOKENIZER_PAIR_MERGES_H_
#define HIPPODROME_TOOLS_TRAIN_TOKENIZER_PAIR_MERGES_H_

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hippodrome {

// A word as symbols, and how often it is in the text.
struct SymbolWord {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

struct SymbolPair {
  int32_t left = 0;
  int32_t right = 0;
  int64_t count = 0;  // in the text
};

// Words and the pairs in them, kept up to date from merge to merge. Not thread-safe.
class PairMerges {
 public:
  // REQUIRES: symbols and counts of at least 0.
  explicit PairMerges(std::vector<SymbolWord> words);

  // The most frequent pair; among equals that with the lower left symbol, then with the lower right
  // one. Nothing when no word has two symbols.
  std::optional<SymbolPair> MostFrequent();
  // Replaces the pair by `symbol` wherever it stands, from left to right in each word. Takes time
  // in proportion to the words that have it.
  void Merge(const SymbolPair& pair, int32_t symbol);

 private:
  struct Occurrences {
    int64_t count = 0;
    std::vector<int32_t> words;  // all that have the pair, and some that no longer do
  };
  // A count that was true when it was noted.
  struct Candidate {
    int64_t count = 0;
    uint64_t key = 0;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  // Counts the pairs of word `index`, in which only those with `symbol` are new; or takes its pairs
  // off the counts.
  void AddPairs(int32_t index, int32_t symbol);
  void RemovePairs(int32_t index);

  std::vector<SymbolWord> words_;
  absl::flat_hash_map<uint64_t, Occurrences> pairs_;  // by left << 32 | right
  std::priority_queue<Candidate> candidates_;
  std::vector<uint64_t> grown_;  // pairs of the last merge, to be noted as candidates
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_TOKENIZER_PAIR_MERGES_H_
