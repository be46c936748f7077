#include "engine/tokenizer/gpt2_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hippodrome::gpt2_split_test {
namespace {

using testing::ElementsAre;

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(text.substr(0, FirstWordLength(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

TEST(Gpt2Split, KeepsTheSpaceBeforeAWord) {
  EXPECT_THAT(Split("Two words, 3 times!?"),
              ElementsAre("Two", " words", ",", " 3", " times", "!?"));
  EXPECT_THAT(Split("ab12cd"), ElementsAre("ab", "12", "cd"));
  EXPECT_THAT(Split(" (x)"), ElementsAre(" (", "x", ")"));
}

TEST(Gpt2Split, CutsContractionsInLowerCase) {
  EXPECT_THAT(Split("I'll we've you're he'd it's I'm don't"),
              ElementsAre("I", "'ll", " we", "'ve", " you", "'re", " he", "'d", " it", "'s", " I",
                          "'m", " don", "'t"));
  EXPECT_THAT(Split("'story"), ElementsAre("'s", "tory"));
  EXPECT_THAT(Split("IT'S"), ElementsAre("IT", "'", "S"));
  EXPECT_THAT(Split(" 'tis"), ElementsAre(" '", "tis"));
  EXPECT_THAT(Split("!'s"), ElementsAre("!'", "s"));
  EXPECT_THAT(Split("'l"), ElementsAre("'", "l"));
}

TEST(Gpt2Split, LeavesTheLastSpaceToTheNextWord) {
  EXPECT_THAT(Split("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(Split("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(Split("a\nb"), ElementsAre("a", "\n", "b"));
  EXPECT_THAT(Split("a \n "), ElementsAre("a", " \n "));
  EXPECT_THAT(Split("a "), ElementsAre("a", " "));
  EXPECT_THAT(Split("\t x"), ElementsAre("\t", " x"));
}

TEST(Gpt2Split, TellsLettersNumbersAndSpacesByUnicode) {
  EXPECT_THAT(Split("\u00e9t\u00e9\u00b2\u2167\u6f22"),
              ElementsAre("\u00e9t\u00e9", "\u00b2\u2167", "\u6f22"));
  EXPECT_THAT(Split("a\u00a0b"), ElementsAre("a", "\u00a0", "b"));
  EXPECT_THAT(Split("a\u3000\u2003b"), ElementsAre("a", "\u3000", "\u2003", "b"));
  // Neither a file separator nor a zero-width space has the property White_Space; a combining
  // accent is no letter.
  EXPECT_THAT(Split("a\x1c\u200b"), ElementsAre("a", "\x1c\u200b"));
  EXPECT_THAT(Split("e\u0301"), ElementsAre("e", "\u0301"));
}

TEST(Gpt2Split, TakesInvalidBytesForSymbols) {
  EXPECT_THAT(Split("a\xff\xe2\x82z"), ElementsAre("a", "\xff\xe2\x82", "z"));
  EXPECT_THAT(Split(" \xc3"), ElementsAre(" \xc3"));
  EXPECT_THAT(Split("\xed\xa0\x80!"), ElementsAre("\xed\xa0\x80!"));
}

TEST(Gpt2Split, CountsTheSpacesAtTheEnd) {
  EXPECT_EQ(TrailingSpaceLength(""), 0);
  EXPECT_EQ(TrailingSpaceLength(" a b"), 0);
  EXPECT_EQ(TrailingSpaceLength(" a \n\t"), 3);
  EXPECT_EQ(TrailingSpaceLength(" \n"), 2);
  EXPECT_EQ(TrailingSpaceLength("a\u3000 "), 4);
  EXPECT_EQ(TrailingSpaceLength("a\xe3\x80"), 0);  // half of that space
}

TEST(Gpt2Split, SettledWordsStayWhateverFollows) {
  const std::string parts[] = {"a",    "'", "re", "l",      " ",      "\n", "7",
                               "\xc3", "!", "s",  "\u3000", "\u00e9", " '", "  "};
  for (const std::string& one : parts) {
    for (const std::string& two : parts) {
      for (const std::string& three : parts) {
        const std::string text = "It's " + one + two + three;
        const size_t settled = SettledLength(text);
        ASSERT_LT(settled, text.size());
        for (const std::string& more : parts) {
          size_t end = 0;  // of the words of all, up to where those that are settled end
          const std::string all = text + more;
          while (end < settled) end += FirstWordLength(std::string_view(all).substr(end));
          EXPECT_EQ(end, settled) << text << "|" << more;
        }
      }
    }
  }
  EXPECT_EQ(SettledLength(""), 0);
  EXPECT_EQ(SettledLength("one"), 0);
  EXPECT_EQ(SettledLength("one two three"), 3);
}

}  // namespace
}  // namespace hippodrome::gpt2_split_test
