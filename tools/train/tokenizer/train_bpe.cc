#include "tools/train/tokenizer/train_bpe.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/tokenizer/byte_symbols.h"
#include "tools/train/tokenizer/pair_merges.h"
#include "tools/train/tokenizer/token_table.h"

namespace hippodrome {
namespace {

constexpr int64_t kMostTokens = 1 << 24;
constexpr int64_t kLeastCount = 2;
constexpr const char* kEndOfText = "<|endoftext|>";

// Tokens are written in byte symbols, whose order in UTF-8 is that of their code points.
void AddBytes(TokenTable& table) {
  std::vector<std::string> symbols;
  for (int byte = 0; byte < 256; ++byte) {
    symbols.push_back(SymbolOfByte(static_cast<uint8_t>(byte)));
  }
  std::sort(symbols.begin(), symbols.end());
  for (const std::string& symbol : symbols) table.Add(symbol);
}

std::vector<SymbolWord> BytesOf(const WordCounts& words, const TokenTable& table) {
  std::array<int32_t, 256> ids;
  for (int byte = 0; byte < 256; ++byte) {
    ids[byte] = table.Find(SymbolOfByte(static_cast<uint8_t>(byte)));
  }
  std::vector<SymbolWord> symbol_words;
  for (const auto& [word, count] : words.Sorted()) {
    SymbolWord& symbols = symbol_words.emplace_back();
    symbols.count = count;
    for (const char byte : word) symbols.symbols.push_back(ids[static_cast<uint8_t>(byte)]);
  }
  return symbol_words;
}

std::string VocabJson(const TokenTable& table) {
  std::string text = "{";
  for (size_t id = 0; id < table.tokens().size(); ++id) {
    text += (id == 0 ? "" : ", ") + nlohmann::json(table.tokens()[id]).dump() + ": " +
            std::to_string(id);
  }
  return text + "}\n";
}

}  // namespace

absl::StatusOr<BpeFiles> TrainBpe(const WordCounts& words, int64_t vocab_size,
                                  const VocabularyProgress& progress) {
  TokenTable table;
  AddBytes(table);
  if (vocab_size <= table.size() || vocab_size > kMostTokens) {
    return InvalidArgument("the vocabulary has " + std::to_string(vocab_size) +
                           " tokens, expected 257 (the bytes and " + kEndOfText + ") to 2^24");
  }
  PairMerges merges(BytesOf(words, table));
  BpeFiles files = {.merges = "#version: 0.2\n"};
  while (table.size() < vocab_size - 1) {
    const auto pair = merges.MostFrequent();
    if (!pair || pair->count < kLeastCount) {
      return InvalidArgument("the text gives only " + std::to_string(table.size() + 1) +
                             " tokens, asked for are " + std::to_string(vocab_size));
    }
    const std::string& left = table.tokens()[pair->left];
    const std::string& right = table.tokens()[pair->right];
    files.merges += left + " " + right + "\n";
    merges.Merge(*pair, table.Add(left + right));
    progress(table.size(), vocab_size);
  }
  table.Add(kEndOfText);
  files.vocab_json = VocabJson(table);
  return files;
}

}  // namespace hippodrome
