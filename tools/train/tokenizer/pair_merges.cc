#include "tools/train/tokenizer/pair_merges.h"

#include <algorithm>
#include <utility>

namespace hippodrome {
namespace {

constexpr int32_t kAnySymbol = -1;

uint64_t Key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

bool Has(const std::vector<int32_t>& symbols, const SymbolPair& pair) {
  for (size_t i = 1; i < symbols.size(); ++i) {
    if (symbols[i - 1] == pair.left && symbols[i] == pair.right) return true;
  }
  return false;
}

void Replace(const SymbolPair& pair, int32_t symbol, std::vector<int32_t>& symbols) {
  size_t kept = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const bool found =
        i + 1 < symbols.size() && symbols[i] == pair.left && symbols[i + 1] == pair.right;
    symbols[kept++] = found ? symbol : symbols[i];
    i += found ? 1 : 0;
  }
  symbols.resize(kept);
}

}  // namespace

PairMerges::PairMerges(std::vector<SymbolWord> words) : words_(std::move(words)) {
  for (size_t i = 0; i < words_.size(); ++i) AddPairs(static_cast<int32_t>(i), kAnySymbol);
  std::vector<Candidate> candidates;
  for (const auto& [key, pair] : pairs_) candidates.push_back({pair.count, key});
  candidates_ = std::priority_queue<Candidate>({}, std::move(candidates));
  grown_.clear();
}

void PairMerges::AddPairs(int32_t index, int32_t symbol) {
  const SymbolWord& word = words_[index];
  for (size_t i = 1; i < word.symbols.size(); ++i) {
    const int32_t left = word.symbols[i - 1];
    const int32_t right = word.symbols[i];
    const uint64_t key = Key(left, right);
    Occurrences& pair = pairs_[key];
    pair.count += word.count;
    // Pairs of other symbols were in the word before: they know it, and have not grown.
    if (symbol != kAnySymbol && left != symbol && right != symbol) continue;
    if (pair.words.empty() || pair.words.back() != index) pair.words.push_back(index);
    grown_.push_back(key);
  }
}

void PairMerges::RemovePairs(int32_t index) {
  const SymbolWord& word = words_[index];
  for (size_t i = 1; i < word.symbols.size(); ++i) {
    pairs_[Key(word.symbols[i - 1], word.symbols[i])].count -= word.count;
  }
}

std::optional<SymbolPair> PairMerges::MostFrequent() {
  while (!candidates_.empty()) {
    const Candidate best = candidates_.top();
    const auto found = pairs_.find(best.key);
    const int64_t count = found == pairs_.end() ? 0 : found->second.count;
    if (count == best.count && count > 0) {
      return SymbolPair{static_cast<int32_t>(best.key >> 32), static_cast<int32_t>(best.key),
                        count};
    }
    candidates_.pop();
    if (count > 0 && count < best.count) candidates_.push({count, best.key});
  }
  return std::nullopt;
}

void PairMerges::Merge(const SymbolPair& pair, int32_t symbol) {
  const auto found = pairs_.find(Key(pair.left, pair.right));
  if (found == pairs_.end()) return;
  const std::vector<int32_t> words = std::move(found->second.words);
  for (const int32_t index : words) {
    if (!Has(words_[index].symbols, pair)) continue;
    RemovePairs(index);
    Replace(pair, symbol, words_[index].symbols);
    AddPairs(index, symbol);
  }
  pairs_.erase(Key(pair.left, pair.right));
  std::sort(grown_.begin(), grown_.end());
  grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
  for (const uint64_t key : grown_) {
    const auto grown = pairs_.find(key);
    if (grown != pairs_.end()) candidates_.push({grown->second.count, key});
  }
  grown_.clear();
}

}  // namespace hippodrome
