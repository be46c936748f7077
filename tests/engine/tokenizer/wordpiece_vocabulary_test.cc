#include "engine/tokenizer/wordpiece_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::wordpiece_vocabulary_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSpecials[] = "[PAD]\n[MASK]\n[UNK]\n[CLS]\n[SEP]\n";

TEST(WordPieceVocabulary, NumbersTokensByLine) {
  for (const std::string rest : {"a\n##a\nab", "a\n##a\nab\n", "a\r\n##a\r\nab\r\n"}) {
    const auto vocabulary = ParseWordPieceVocabulary(kSpecials + rest);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    EXPECT_THAT(vocabulary->tokens,
                ElementsAre("[PAD]", "[MASK]", "[UNK]", "[CLS]", "[SEP]", "a", "##a", "ab"));
    EXPECT_THAT(vocabulary->specials, ElementsAre(0, 2, 3, 4, 1));
    EXPECT_EQ(vocabulary->longest, 6u);
    EXPECT_EQ(vocabulary->Find("a", false), 5);
    EXPECT_EQ(vocabulary->Find("a", true), 6);
    EXPECT_EQ(vocabulary->Find("##a", false), 6);
    EXPECT_EQ(vocabulary->Find("##a", true), -1);
    EXPECT_EQ(vocabulary->Find("ab", true), -1);
    EXPECT_EQ(vocabulary->Find("", false), -1);
  }
}

struct BadFile {
  std::string text;
  std::string message;
};

TEST(WordPieceVocabulary, NamesTheLineAtFault) {
  const std::string good = kSpecials;
  const BadFile bad[] = {
      {"", "vocab.txt: there is no token [PAD]"},
      {"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[mask]\n", "vocab.txt: there is no token [MASK]"},
      {good + "\na\n", "vocab.txt:6: \"\": expected a token, found an empty line"},
      {good + "\r\n", "vocab.txt:6: \"\": expected a token, found an empty line"},
      {good + "a\nb\na\n", "vocab.txt:8: \"a\": line 6 has this token too"},
      {good + "a\nb\xff\n", "vocab.txt:7: \"b?\": expected a token in UTF-8"},
      {good + "\xe4\xb8", "vocab.txt:6: \"??\": expected a token in UTF-8"},
  };
  for (const BadFile& file : bad) {
    const absl::Status status = ParseWordPieceVocabulary(file.text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << file.message;
    EXPECT_THAT(Message(status), HasSubstr(file.message));
  }
}

}  // namespace
}  // namespace hippodrome::wordpiece_vocabulary_test
