#include "tools/train/data/tokenized_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <span>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::tokenized_text_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TokenizedTextTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const TokenizedText& text) {
    EXPECT_TRUE(WriteTokenFile(directory_.File(name), text).ok());
    return directory_.File(name);
  }
  // The error of a file of I32 "tokens" with these metadata.
  std::string Error(const std::vector<int32_t>& tokens,
                    const std::map<std::string, std::string>& metadata) {
    const std::string path = directory_.File("bad");
    const auto writer =
        *SafetensorsWriter::Create(path, {{"tokens", DType::kI32, {std::ssize(tokens)}}}, metadata);
    EXPECT_TRUE(writer->Append(std::as_bytes(std::span(tokens))).ok() && writer->Finish().ok());
    return Message(ReadTokenFiles({path}).status());
  }
  std::string Error(const TokenizedText& text) {
    return Message(ReadTokenFiles({Write("bad", text)}).status());
  }

  TemporaryDirectory directory_;
};

const TokenizedText kWordPieceText = {.kind = TokenizerKind::kWordPiece,
                                      .vocab_size = 9,
                                      .tokens = {8, 0, 1, 2, 3},
                                      .sentence_ends = {2, 4, 5},
                                      .document_ends = {1, 3}};

TEST_F(TokenizedTextTest, FilesAreJoined) {
  const std::string path = Write("a", kWordPieceText);
  const auto text = ReadTokenFiles({path, path});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->kind, TokenizerKind::kWordPiece);
  EXPECT_EQ(text->vocab_size, 9);
  EXPECT_THAT(text->tokens, ElementsAre(8, 0, 1, 2, 3, 8, 0, 1, 2, 3));
  EXPECT_THAT(text->sentence_ends, ElementsAre(2, 4, 5, 7, 9, 10));
  EXPECT_THAT(text->document_ends, ElementsAre(1, 3, 4, 6));
}

TEST_F(TokenizedTextTest, PairTokensHaveNoSentences) {
  const auto text = ReadTokenFiles({Write("a", {.vocab_size = 3, .tokens = {2, 1}})});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->kind, TokenizerKind::kBpe);
  EXPECT_THAT(text->tokens, ElementsAre(2, 1));
}

TEST_F(TokenizedTextTest, RefusesOtherFilesAndTokenizers) {
  EXPECT_THAT(Error({0}, {}), AllOf(HasSubstr("bad: "), HasSubstr("no 'tokenizer'")));
  EXPECT_THAT(Error({0}, {{"tokenizer", "t5"}, {"vocab_size", "9"}}), HasSubstr("'t5'"));
  EXPECT_THAT(Error({0}, {{"tokenizer", "bpe"}, {"vocab_size", "-1"}}), HasSubstr("'-1'"));
  EXPECT_THAT(Error({}, {{"tokenizer", "bpe"}, {"vocab_size", "9"}}), HasSubstr("no tokens"));
  EXPECT_THAT(Error({0}, {{"tokenizer", "wordpiece"}, {"vocab_size", "9"}}),
              HasSubstr("no tensor 'sentence_ends'"));
  EXPECT_FALSE(ReadTokenFiles({directory_.File("none")}).ok());
  EXPECT_FALSE(ReadTokenFiles({}).ok());
  const std::string a = Write("a", kWordPieceText);
  const std::string b = Write("b", {.vocab_size = 9, .tokens = {2}});
  EXPECT_THAT(Message(ReadTokenFiles({a, b}).status()),
              AllOf(HasSubstr("/b: "), HasSubstr("9 tokens of bpe")));
}

TEST_F(TokenizedTextTest, RefusesIdsAndPlacesThatAreOutOfRange) {
  EXPECT_THAT(Error({.vocab_size = 3, .tokens = {3}}), HasSubstr("a token 3, expected 0 to 2"));
  EXPECT_THAT(Error({.vocab_size = 3, .tokens = {0, -1}}), HasSubstr("a token -1"));
  for (const std::vector<int64_t>& ends :
       {std::vector<int64_t>{}, {0, 5}, {2, 4}, {2, 2, 5}, {4, 2, 5}, {5, 6}}) {
    TokenizedText text = kWordPieceText;
    text.sentence_ends = ends;
    EXPECT_THAT(Error(text), HasSubstr("'sentence_ends' does not rise"));
  }
  TokenizedText text = kWordPieceText;
  text.document_ends = {1, 2};
  EXPECT_THAT(Error(text), HasSubstr("'document_ends' does not rise from above 0 to 3"));
}

}  // namespace
}  // namespace hippodrome::tokenized_text_test
