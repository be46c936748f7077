#include "tools/train/data/token_classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::token_classification_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const WordPieceTokenizer& Tokenizer() {
  static const auto* const tokenizer =
      new auto(*WordPieceTokenizer::Parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n.\n"));
  return **tokenizer;
}

std::string ReadError(std::string_view text) { return Message(ReadTaggedSentences(text).status()); }

TEST(TokenClassificationTest, ReadsSentences) {
  const auto sentences = ReadTaggedSentences("\nA\tX\r\nb\tO\n\n\n.\tO");
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  ASSERT_EQ(sentences->size(), 2U);
  EXPECT_EQ((*sentences)[0].size(), 2U);
  EXPECT_EQ((*sentences)[0][0].word, "A");
  EXPECT_EQ((*sentences)[0][0].tag, "X");
  EXPECT_EQ((*sentences)[1][0].line, 6);
  EXPECT_THAT(TagsOf(*sentences), ElementsAre("O", "X"));
}

TEST(TokenClassificationTest, NamesTheLineAtFault) {
  EXPECT_THAT(ReadError("a\tO\nb O\n"), HasSubstr("line 2: 'b O', expected a word, a tab"));
  EXPECT_THAT(ReadError("a\tO\tX\n"), HasSubstr("line 1"));
  EXPECT_THAT(ReadError("\tO\n"), HasSubstr("line 1"));
  EXPECT_THAT(ReadError("a\t\n"), HasSubstr("line 1"));
  EXPECT_THAT(ReadError("\n\n"), HasSubstr("no sentences"));
  const auto sentences = ReadTaggedSentences("a\tO\n");
  EXPECT_THAT(Message(MakeTokenClassification(*sentences, {"X"}, Tokenizer(), 8, {}).status()),
              HasSubstr("line 1: the tag is 'O'"));
}

// "abb" is two pieces after "a": only a word's first piece has a label. A word without a piece
// has none.
TEST(TokenClassificationTest, FirstPiecesHaveLabels) {
  const auto sentences = ReadTaggedSentences("bb\tX\na.\tO\n\x01\tX\nb\tX\n\na\tX\n");
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  const auto data = MakeTokenClassification(*sentences, {"O", "X"}, Tokenizer(), 8,
                                            {.batch_size = 2, .evaluation = true});
  ASSERT_TRUE(data.ok()) << data.status();
  const TrainingBatch batch = (*data)->Batch(0);
  EXPECT_THAT(batch.ids, ElementsAre(2, 6, 7, 5, 8, 6, 3, 0, 2, 5, 3, 0, 0, 0, 0, 0));
  EXPECT_THAT(batch.labels,
              ElementsAre(-1, 1, -1, 0, -1, 1, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1));
}

TEST(TokenClassificationTest, LongSentencesAreCut) {
  const auto sentences = ReadTaggedSentences("a\tX\nb\tX\na\tX\n");
  const auto data = MakeTokenClassification(*sentences, {"X"}, Tokenizer(), 4, {});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT((*data)->Batch(0).ids, ElementsAre(2, 5, 6, 3));
  EXPECT_THAT((*data)->Batch(0).labels, ElementsAre(-1, 0, 0, -1));
}

}  // namespace
}  // namespace hippodrome::token_classification_test
