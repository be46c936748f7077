#include "tools/train/data/split_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "engine/tokenizer/gpt2_split.h"

namespace hippodrome::split_text_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SplitDocumentsTest, PartsBetweenMarkers) {
  EXPECT_THAT(SplitDocuments("a b<|endoftext|>\nc\n<|endoftext|>\n<|endoftext|>"),
              ElementsAre("a b", "\nc\n"));
  EXPECT_THAT(SplitDocuments("whole"), ElementsAre("whole"));
  EXPECT_THAT(SplitDocuments(" \n"), IsEmpty());
  EXPECT_THAT(SplitDocuments(""), IsEmpty());
}

TEST(SplitSentencesTest, EndsAtStopsAndEmptyLines) {
  EXPECT_THAT(SplitSentences("EMMA\n\nBy Jane\nAusten. She said, \"No!\" \u201cWhy?\u201d (Well.)\n"
                             "It cost 3.50 \r\n \r\nEnd"),
              ElementsAre("EMMA", "By Jane\nAusten.", "She said, \"No!\"", "\u201cWhy?\u201d",
                          "(Well.)", "It cost 3.50", "End"));
  EXPECT_THAT(SplitSentences("one\ntwo..."), ElementsAre("one\ntwo..."));
  EXPECT_THAT(SplitSentences(" \n\n "), IsEmpty());
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (; !text.empty(); text.remove_prefix(words.back().size())) {
    words.push_back(text.substr(0, FirstWordLength(text)));
  }
  return words;
}

// Random texts of what matters to the pattern, cut as often as possible.
TEST(SplitBetweenWordsTest, WordsStayTheSame) {
  std::minstd_rand random(1);
  const std::string alphabet[] = {"\n", "\n", "\n", " ",      "\t",     "a",
                                  "b1", "'s", ".",  "\u00a0", "\u00e9", "\xff"};
  size_t most_parts = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int j = 0; j < 40; ++j) text += alphabet[random() % std::size(alphabet)];
    std::vector<std::string_view> words;
    const auto parts = SplitBetweenWords(text, 1);
    std::string joined;
    for (const std::string_view part : parts) {
      joined += part;
      for (const std::string_view word : Words(part)) words.push_back(word);
    }
    ASSERT_EQ(joined, text);
    ASSERT_EQ(words, Words(text));
    most_parts = std::max(most_parts, parts.size());
  }
  EXPECT_GT(most_parts, 3U);
}

}  // namespace
}  // namespace hippodrome::split_text_test
