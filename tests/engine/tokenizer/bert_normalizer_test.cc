#include "engine/tokenizer/bert_normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hippodrome::bert_normalizer_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A word, and the place of each of its bytes.
using Word = std::pair<std::string, std::vector<int64_t>>;

std::vector<Word> Words(std::string_view text, int64_t first = 0) {
  BertWords words;
  BertNormalizer().Normalize(text, first, words);
  std::vector<Word> result;
  for (int64_t i = 0; i < words.size(); ++i) {
    result.emplace_back(words[i].text, std::vector(words[i].places.begin(), words[i].places.end()));
  }
  return result;
}

TEST(BertNormalizer, SplitsAtSpacesAndPunctuation) {
  EXPECT_THAT(Words("Ab\t-c'"),
              ElementsAre(Pair("ab", ElementsAre(0, 1)), Pair("-", ElementsAre(3)),
                          Pair("c", ElementsAre(4)), Pair("'", ElementsAre(5))));
  EXPECT_THAT(Words(" \r\n\u3000"), IsEmpty());
}

TEST(BertNormalizer, CountsPlacesFromTheFirst) {
  BertWords words;
  BertNormalizer normalizer;
  EXPECT_EQ(normalizer.Normalize("\u00e9 x", 7, words), 10);
  EXPECT_EQ(normalizer.Normalize("y", 10, words), 11);
  ASSERT_EQ(words.size(), 3);
  EXPECT_EQ(words[0].text, "e");
  EXPECT_THAT(words[0].places, ElementsAre(7));
  EXPECT_EQ(words[2].text, "y");
  EXPECT_THAT(words[2].places, ElementsAre(10));
  words.Clear();
  EXPECT_EQ(words.size(), 0);
}

TEST(BertNormalizer, DropsControlsAndMarks) {
  EXPECT_THAT(Words("a\u200b\u0301\x01"
                    "b"),
              ElementsAre(Pair("ab", ElementsAre(0, 4))));
  EXPECT_THAT(Words("\u0301"), IsEmpty());
}

TEST(BertNormalizer, DropsWhatIsNotUtf8) {
  // A wrong byte; a character cut short, which is one part; two bytes of which none begins one.
  EXPECT_THAT(Words("a\xff"
                    "b\xe4\xb8"
                    "c\xc0\x80"
                    "d"),
              ElementsAre(Pair("abcd", ElementsAre(0, 2, 4, 7))));
  EXPECT_THAT(Words("a\xf0\x9f\x98"), ElementsAre(Pair("a", ElementsAre(0))));
}

TEST(BertNormalizer, SetsIdeographsApart) {
  EXPECT_THAT(Words("a\u4e2d\u0301b"),
              ElementsAre(Pair("a", ElementsAre(0)), Pair("\u4e2d", ElementsAre(1, 1, 1)),
                          Pair("b", ElementsAre(3))));
}

TEST(BertNormalizer, StripsBeforeItLowers) {
  EXPECT_THAT(Words("\u0130"), ElementsAre(Pair("i", ElementsAre(0))));
  // No final sigma.
  EXPECT_THAT(Words("\u039f\u03a3"), ElementsAre(Pair("\u03bf\u03c3", ElementsAre(0, 0, 1, 1))));
}

TEST(BertNormalizer, GivesAllPartsOfACharacterItsPlace) {
  EXPECT_THAT(Words("\uac00"), ElementsAre(Pair("\u1100\u1161", ElementsAre(0, 0, 0, 0, 0, 0))));
}

TEST(BertNormalizer, SortsMarksAndLeavesThePlaces) {
  // U+302E (class 224) goes behind U+0323 (class 220), which is then dropped.
  EXPECT_THAT(Words("a\u302e\u0323"), ElementsAre(Pair("a\u302e", ElementsAre(0, 2, 2, 2))));
  // U+302E and U+0344, which is two parts of class 230: the second has the place of the first.
  EXPECT_THAT(Words("a\u0344\u302e\u0301b"), ElementsAre(Pair("a\u302e"
                                                              "b",
                                                              ElementsAre(0, 1, 1, 1, 4))));
}

}  // namespace
}  // namespace hippodrome::bert_normalizer_test
