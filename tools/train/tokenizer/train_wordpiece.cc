#include "tools/train/tokenizer/train_wordpiece.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/tokenizer/utf8.h"
#include "engine/tokenizer/wordpiece_vocabulary.h"
#include "tools/train/tokenizer/pair_merges.h"
#include "tools/train/tokenizer/token_table.h"

namespace hippodrome {
namespace {

constexpr int64_t kMostWordPieces = 1 << 24;
constexpr int64_t kLeastPairCount = 2;
constexpr size_t kMostPieceCharacters = 1000;
constexpr std::string_view kContinues = "##";

using CountedWords = std::vector<std::pair<std::string, int64_t>>;

std::vector<std::string> CharactersOf(std::string_view word) {
  std::vector<std::string> characters;
  while (!word.empty()) {
    const size_t length = FirstUtf8Char(word).length;
    characters.emplace_back(word.substr(0, length));
    word.remove_prefix(length);
  }
  return characters;
}

// The most frequent characters, of equally frequent ones those that sort first.
std::set<std::string> Alphabet(const CountedWords& words) {
  std::map<std::string, int64_t> counts;
  for (const auto& [word, count] : words) {
    for (const std::string& character : CharactersOf(word)) counts[character] += count;
  }
  CountedWords characters(counts.begin(), counts.end());
  std::sort(characters.begin(), characters.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  characters.resize(std::min(characters.size(), kMostPieceCharacters));
  std::set<std::string> alphabet;
  for (const auto& [character, count] : characters) alphabet.insert(character);
  return alphabet;
}

// A word's characters as pieces, or none if one is not in the alphabet.
std::vector<std::string> PiecesOf(std::string_view word, const std::set<std::string>& alphabet) {
  std::vector<std::string> pieces = CharactersOf(word);
  for (const std::string& piece : pieces) {
    if (!alphabet.contains(piece)) return {};
  }
  for (size_t i = 1; i < pieces.size(); ++i) pieces[i].insert(0, kContinues);
  return pieces;
}

// The words in symbols of the table, to which the specials and then the characters are added.
std::vector<SymbolWord> AddCharacters(const CountedWords& words, TokenTable& table) {
  for (const std::string_view name : WordPieceVocabulary::kSpecialNames) {
    table.Add(std::string(name));
  }
  const std::set<std::string> alphabet = Alphabet(words);
  std::set<std::string> characters;
  for (const auto& [word, count] : words) {
    for (std::string& piece : PiecesOf(word, alphabet)) characters.insert(std::move(piece));
  }
  for (const std::string& character : characters) table.Add(character);
  std::vector<SymbolWord> symbol_words;
  for (const auto& [word, count] : words) {
    SymbolWord& symbols = symbol_words.emplace_back();
    symbols.count = count;
    for (const std::string& piece : PiecesOf(word, alphabet)) {
      symbols.symbols.push_back(table.Find(piece));
    }
  }
  return symbol_words;
}

absl::Status CheckSize(int64_t vocab_size, int64_t least) {
  if (vocab_size >= least && vocab_size <= kMostWordPieces) return absl::OkStatus();
  return InvalidArgument("the vocabulary has " + std::to_string(vocab_size) + " tokens, expected " +
                         std::to_string(least) +
                         " (the specials and the characters of the text) to 2^24");
}

}  // namespace

absl::StatusOr<std::string> TrainWordPiece(const WordCounts& words, int64_t vocab_size,
                                           const VocabularyProgress& progress) {
  TokenTable table;
  PairMerges merges(AddCharacters(words.Sorted(), table));
  HIPPODROME_RETURN_IF_ERROR(CheckSize(vocab_size, table.size()));
  while (table.size() < vocab_size) {
    const auto pair = merges.MostFrequent();
    if (!pair || pair->count < kLeastPairCount) {
      return InvalidArgument("the text gives only " + std::to_string(table.size()) +
                             " tokens, asked for are " + std::to_string(vocab_size));
    }
    const std::string& right = table.tokens()[pair->right];
    merges.Merge(*pair, table.Add(table.tokens()[pair->left] + right.substr(kContinues.size())));
    progress(table.size(), vocab_size);
  }
  std::string vocab;
  for (const std::string& token : table.tokens()) vocab += token + "\n";
  return vocab;
}

}  // namespace hippodrome
