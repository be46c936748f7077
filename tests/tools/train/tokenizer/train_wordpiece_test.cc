#include "tools/train/tokenizer/train_wordpiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/status.h"
#include "engine/tokenizer/wordpiece.h"

namespace hippodrome::train_wordpiece_test {
namespace {

using testing::HasSubstr;

void NoProgress(int64_t, int64_t) {}

absl::StatusOr<std::string> TrainOn(std::string_view text, int64_t vocab_size) {
  WordCounts counts;
  CountBertWords(text, counts);
  return TrainWordPiece(counts, vocab_size, NoProgress);
}

// "abc" and "ab" are there twice each: "ab" is merged first, then "ab" with "##c".
TEST(TrainWordPieceTest, MergesTheMostFrequentPair) {
  const auto vocab = TrainOn("Abc \u00c0B, ab abc", 11);
  ASSERT_TRUE(vocab.ok()) << vocab.status();
  EXPECT_EQ(*vocab, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n##b\n##c\n,\na\nab\nabc\n");
}

TEST(TrainWordPieceTest, TheServingTokenizerReadsIt) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "The horses ran, and the runner rode horses again. ";
  const auto vocab = TrainOn(text, 40);
  ASSERT_TRUE(vocab.ok()) << vocab.status();
  const auto tokenizer = WordPieceTokenizer::Parse(*vocab);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocab_size(), 40);
  EXPECT_EQ((*tokenizer)->pad(), 0);
  EXPECT_EQ((*tokenizer)->unk(), 1);
  EXPECT_EQ((*tokenizer)->cls(), 2);
  EXPECT_EQ((*tokenizer)->sep(), 3);
  EXPECT_EQ((*tokenizer)->mask(), 4);
  std::vector<int32_t> ids;
  for (const WordPiece& piece : (*tokenizer)->Tokenize("The horses ran again.")) {
    EXPECT_NE(piece.id, 1);
    ids.push_back(piece.id);
  }
  EXPECT_EQ((*tokenizer)->Decode(ids, false), "the horses ran again.");
  EXPECT_LT(ids.size(), 10U);
}

// The alphabet has 1,000 characters: of 1,100 the rarest are left out, and words with them.
TEST(TrainWordPieceTest, RareCharactersAreLeftOut) {
  std::string text;
  for (int i = 0; i < 1100; ++i) {
    // Letters of three bytes.
    const int code = 0xa000 + i;
    const std::string character = {static_cast<char>(0xe0 | code >> 12),
                                   static_cast<char>(0x80 | (code >> 6 & 0x3f)),
                                   static_cast<char>(0x80 | (code & 0x3f))};
    text += character + " " + (i < 1000 ? character + " " : "");
  }
  const auto vocab = TrainOn(text, 1005);
  ASSERT_TRUE(vocab.ok()) << vocab.status();
  EXPECT_THAT(Message(TrainOn(text, 1004).status()), HasSubstr("expected 1005"));
}

TEST(TrainWordPieceTest, RefusesSizesThatCannotBe) {
  EXPECT_THAT(Message(TrainOn("ab ab", 6).status()), HasSubstr("has 6 tokens, expected 7"));
  EXPECT_THAT(Message(TrainOn("ab ab", 9).status()),
              HasSubstr("the text gives only 8 tokens, asked for are 9"));
  EXPECT_FALSE(TrainOn("ab", int64_t{1} << 40).ok());
}

}  // namespace
}  // namespace hippodrome::train_wordpiece_test
