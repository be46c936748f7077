#include "tools/train/data/encode_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::encode_text_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kTestdata = HIPPODROME_TESTDATA;

void NoProgress(int64_t, int64_t) {}

// Some hundred kilobytes, so that there are several parts.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 40000; ++i) {
    text += "Line " + std::to_string(i * 7919 % 1000) + (i % 5 == 0 ? ".\n\n" : " goes on\n");
    if (i % 15000 == 14999) text += "<|endoftext|>";
  }
  return text;
}

TEST(EncodeTextTest, PairTokensAreThoseOfWholeDocuments) {
  const auto tokenizer = *BpeTokenizer::Read(kTestdata + "/tokenizer");
  const std::string text = LongText();
  std::vector<int32_t> expected;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("<|endoftext|>", begin), text.size());
    const auto ids = tokenizer->Encode(text.substr(begin, end - begin));
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.push_back(tokenizer->end_of_text());
    begin = end + 13;
  }
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    TokenizedText tokens;
    int64_t done = 0;
    const auto progress = [&](int64_t now, int64_t) { done = now; };
    ASSERT_TRUE(AppendText(*tokenizer, text, pool, progress, tokens).ok());
    EXPECT_EQ(tokens.tokens, expected);
    EXPECT_EQ(done, std::ssize(text) - 26);
  }
}

TEST(EncodeTextTest, WordPieceKeepsSentencesAndDocuments) {
  const auto tokenizer =
      *WordPieceTokenizer::Parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n.\n");
  ThreadPool pool(1);
  TokenizedText tokens;
  // A document of nothing but a control character is none.
  AppendText(*tokenizer, "A bb. B.\n\nx<|endoftext|>\x01<|endoftext|>B", pool, NoProgress, tokens);
  EXPECT_THAT(tokens.tokens, ElementsAre(5, 6, 7, 8, 6, 8, 1, 6));
  EXPECT_THAT(tokens.sentence_ends, ElementsAre(4, 6, 7, 8));
  EXPECT_THAT(tokens.document_ends, ElementsAre(3, 4));
}

TEST(EncodeTextTest, ThreadsDoNotMatterToWordPiece) {
  const auto tokenizer = *WordPieceTokenizer::Read(kTestdata + "/tokenizer/wordpiece");
  TokenizedText one;
  TokenizedText three;
  ThreadPool pool_of_one(1);
  ThreadPool pool_of_three(3);
  AppendText(*tokenizer, LongText(), pool_of_one, NoProgress, one);
  AppendText(*tokenizer, LongText(), pool_of_three, NoProgress, three);
  EXPECT_EQ(one.tokens, three.tokens);
  EXPECT_EQ(one.sentence_ends, three.sentence_ends);
  EXPECT_EQ(one.document_ends, three.document_ends);
  EXPECT_EQ(one.document_ends.size(), 3U);
  EXPECT_EQ(one.sentence_ends.back(), std::ssize(one.tokens));
}

TEST(EncodeTextTest, PairTokensNeedAnEndOfText) {
  const std::string vocab = FileContent(kTestdata + "/tokenizer/vocab.json");
  const std::string marker = "<|endoftext|>";
  std::string without = vocab;
  without.replace(without.find(marker), marker.size(), "<|nothing|>");
  const auto tokenizer =
      *BpeTokenizer::Parse(without, FileContent(kTestdata + "/tokenizer/merges.txt"));
  ThreadPool pool(1);
  TokenizedText tokens;
  EXPECT_THAT(Message(AppendText(*tokenizer, "a", pool, NoProgress, tokens)),
              HasSubstr("no token <|endoftext|>"));
}

}  // namespace
}  // namespace hippodrome::encode_text_test
