#include "engine/tokenizer/bert_characters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hippodrome::bert_characters_test {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

// FNV-1a, a value at a time.
class Hash {
 public:
  void Add(int32_t value) {
    hash_ = (hash_ ^ static_cast<uint64_t>(value)) * uint64_t{0x100000001b3};
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

char KindOf(int32_t c) {
  if (IsBertControl(c)) return 'c';
  if (IsBertSpace(c)) return 's';
  if (IsBertIdeograph(c)) return 'i';
  if (IsBertMark(c)) return 'm';
  return IsBertPunctuation(c) ? 'p' : '.';
}

// The values of this test are those of the reference library, run on every code point. Where they
// are not met, the distribution's Unicode data is newer than the table of exceptions knows.
TEST(BertCharacters, AgreeWithTheReferenceOnAllOfUnicode) {
  std::map<char, int> counts;
  int decomposed = 0;
  Hash kinds;
  Hash decompositions;
  for (int32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const Decomposition parts = Decompose(c);
    if (parts.size == 1 && parts.buffer[0] == c) {
      ++counts[KindOf(c)];
      kinds.Add(KindOf(c));
      continue;
    }
    ++decomposed;
    decompositions.Add(c);
    for (const int32_t part : parts.code_points()) decompositions.Add(part);
  }
  EXPECT_THAT(counts, UnorderedElementsAre(Pair('c', 137681), Pair('s', 20), Pair('i', 80262),
                                           Pair('m', 1549), Pair('p', 722), Pair('.', 878598)));
  EXPECT_EQ(kinds.value(), 0xca39ce0c6c9054d9);
  EXPECT_EQ(decomposed, 13232);
  EXPECT_EQ(decompositions.value(), 0x9d517e8601758add);
}

TEST(BertCharacters, TakesControlsForControlsAndNotForSpaces) {
  for (const int32_t c : {0x00, 0x0b, 0x0c, 0x7f, 0x85, 0xad, 0x200b, 0xfeff, 0xe000, 0xfffd}) {
    EXPECT_TRUE(IsBertControl(c)) << c;
  }
  for (const int32_t c : {0x09, 0x0a, 0x0d, 0x20, 0xa0, 0x2028, 0x2029, 0x3000}) {
    EXPECT_FALSE(IsBertControl(c)) << c;
    EXPECT_TRUE(IsBertSpace(c)) << c;
  }
}

TEST(BertCharacters, LeavesOneGapAmongIdeographs) {
  EXPECT_TRUE(IsBertIdeograph(0x2b81f));
  EXPECT_FALSE(IsBertIdeograph(0x2b820));
  EXPECT_FALSE(IsBertIdeograph(0x2b91f));
  EXPECT_TRUE(IsBertIdeograph(0x2b920));
  EXPECT_FALSE(IsBertIdeograph(0x3042));  // hiragana
  EXPECT_FALSE(IsBertIdeograph(0xac00));  // hangul
}

TEST(BertCharacters, AreThoseOfUnicode8) {
  EXPECT_EQ(KindOf(0x1734), 'm');                                                   // Mc since
  EXPECT_EQ(KindOf(0x166d), 'p');                                                   // So since
  EXPECT_EQ(KindOf(0x111c9), 'p');                                                  // Mn since
  for (const int32_t c : {0x1885, 0x1886, 0xa9bd}) EXPECT_EQ(KindOf(c), '.') << c;  // Mn since
  for (const int32_t c : {0x890, 0x898, 0x8d4, 0x2e43, 0x1e000}) {  // assigned since
    EXPECT_EQ(KindOf(c), '.') << c;
  }
  EXPECT_EQ(BertCombiningClass(0x8d4), 230);  // of Unicode 9.0
  EXPECT_EQ(BertCombiningClass(0x898), 0);    // of Unicode 14.0
  EXPECT_THAT(Decompose(0x11938).code_points(), ElementsAre(0x11938));
}

TEST(BertCharacters, DecomposeToTheEnd) {
  EXPECT_THAT(Decompose(0x1f82).code_points(), ElementsAre(0x3b1, 0x313, 0x300, 0x345));
  EXPECT_THAT(Decompose(0xd55c).code_points(), ElementsAre(0x1112, 0x1161, 0x11ab));
  EXPECT_THAT(Decompose(0xfb01).code_points(), ElementsAre(0xfb01));  // compatibility only
  EXPECT_EQ(BertCombiningClass(0x301), 230);
  EXPECT_EQ(BertCombiningClass('a'), 0);
}

}  // namespace
}  // namespace hippodrome::bert_characters_test
