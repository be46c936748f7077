// The different words of texts, and how often each is there.
#ifndef HIPPODROME_TOOLS_TRAIN_TOKENIZER_WORD_COUNTS_H_
#define HIPPODROME_TOOLS_TRAIN_TOKENIZER_WORD_COUNTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hippodrome {

class WordCounts {
 public:
  void Add(std::string_view word) {
    ++counts_.try_emplace(absl::string_view(word.data(), word.size())).first->second;
  }

  // In the order of their bytes.
  std::vector<std::pair<std::string, int64_t>> Sorted() const;

 private:
  absl::flat_hash_map<std::string, int64_t> counts_;
};

// Adds the words of a text, its markers "<|endoftext|>" apart: those of GPT-2's pattern, as bytes.
void CountGpt2Words(std::string_view text, WordCounts& counts);
// Those of BERT's uncased models, normalized, in UTF-8; but for words of more than 100 characters,
// which no piece is used for.
void CountBertWords(std::string_view text, WordCounts& counts);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_TOKENIZER_WORD_COUNTS_H_
