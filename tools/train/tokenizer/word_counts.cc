#include "tools/train/tokenizer/word_counts.h"

#include <algorithm>

#include "engine/tokenizer/bert_normalizer.h"
#include "engine/tokenizer/bert_words.h"
#include "engine/tokenizer/gpt2_split.h"
#include "tools/train/data/split_text.h"

namespace hippodrome {
namespace {

constexpr int64_t kMostCharacters = 100;

int64_t Characters(std::string_view word) {
  return std::count_if(word.begin(), word.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> WordCounts::Sorted() const {
  std::vector<std::pair<std::string, int64_t>> words(counts_.begin(), counts_.end());
  std::sort(words.begin(), words.end());
  return words;
}

void CountGpt2Words(std::string_view text, WordCounts& counts) {
  for (std::string_view rest : SplitDocuments(text)) {
    while (!rest.empty()) {
      const size_t length = FirstWordLength(rest);
      counts.Add(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }
}

void CountBertWords(std::string_view text, WordCounts& counts) {
  BertNormalizer normalizer;
  BertWords words;
  for (std::string_view rest : SplitDocuments(text)) {
    // From space to space, which keeps the buffers small.
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(' '), rest.size() - 1) + 1;
      words.Clear();
      normalizer.Normalize(rest.substr(0, end), 0, words);
      for (int64_t i = 0; i < words.size(); ++i) {
        if (Characters(words[i].text) <= kMostCharacters) counts.Add(words[i].text);
      }
      rest.remove_prefix(end);
    }
  }
}

}  // namespace hippodrome
