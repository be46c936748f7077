#include "tools/train/tokenizer/pair_merges.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace hippodrome::pair_merges_test {
namespace {

// The definition: all pairs counted anew, and every word looked at for each merge.
class PlainMerges {
 public:
  explicit PlainMerges(std::vector<SymbolWord> words) : words_(std::move(words)) {}

  std::optional<SymbolPair> MostFrequent() const {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const SymbolWord& word : words_) {
      for (size_t i = 1; i < word.symbols.size(); ++i) {
        counts[{word.symbols[i - 1], word.symbols[i]}] += word.count;
      }
    }
    std::optional<SymbolPair> best;
    for (const auto& [pair, count] : counts) {
      if (!best || count > best->count) best = {pair.first, pair.second, count};
    }
    return best;
  }

  void Merge(const SymbolPair& pair, int32_t symbol) {
    for (SymbolWord& word : words_) {
      std::vector<int32_t> merged;
      for (const int32_t next : word.symbols) {
        if (!merged.empty() && merged.back() == pair.left && next == pair.right && !closed_) {
          merged.back() = symbol;
          closed_ = true;  // what was merged takes no part in another merge
        } else {
          merged.push_back(next);
          closed_ = false;
        }
      }
      closed_ = false;
      word.symbols = merged;
    }
  }

 private:
  std::vector<SymbolWord> words_;
  bool closed_ = false;
};

// Few symbols, so that ties, runs of one symbol and overlaps are common. A quarter of the merges
// reuse an older symbol, as when two merges make the same token.
TEST(PairMergesTest, AgreesWithTheDefinition) {
  std::minstd_rand random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<SymbolWord> words(1 + random() % 12);
    for (SymbolWord& word : words) {
      word.count = static_cast<int64_t>(random() % 4 + 1);
      word.symbols.resize(random() % 15);
      for (int32_t& symbol : word.symbols) symbol = static_cast<int32_t>(random() % 3);
    }
    PairMerges merges(words);
    PlainMerges plain(words);
    int32_t next = 3;
    for (auto expected = plain.MostFrequent(); expected; expected = plain.MostFrequent()) {
      const auto pair = merges.MostFrequent();
      ASSERT_TRUE(pair);
      ASSERT_EQ(pair->left, expected->left);
      ASSERT_EQ(pair->right, expected->right);
      ASSERT_EQ(pair->count, expected->count);
      const bool reuse = next > 4 && random() % 4 == 0;
      int32_t symbol = reuse ? 3 : next++;
      if (symbol == pair->left || symbol == pair->right) symbol = next++;
      merges.Merge(*pair, symbol);
      plain.Merge(*pair, symbol);
    }
    EXPECT_FALSE(merges.MostFrequent());
  }
}

TEST(PairMergesTest, TiesGoToLowerSymbols) {
  PairMerges merges({{{5, 1}, 2}, {{4, 9}, 2}, {{4, 3}, 2}});
  const auto pair = merges.MostFrequent();
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->left, 4);
  EXPECT_EQ(pair->right, 3);
}

}  // namespace
}  // namespace hippodrome::pair_merges_test
