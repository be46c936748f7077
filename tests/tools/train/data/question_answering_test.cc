#include "tools/train/data/question_answering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::question_answering_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const WordPieceTokenizer& Tokenizer() {
  static const auto* const tokenizer = new auto(*WordPieceTokenizer::Parse(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\n##e\nf\nq\n?\n"));
  return **tokenizer;
}

SquadFile File(const std::string& context, SquadQuestion question) {
  SquadFile file;
  file.paragraphs.push_back({context, {std::move(question)}});
  file.questions = 1;
  return file;
}

constexpr BatchOptions kInOrder = {.batch_size = 9, .evaluation = true};

// [CLS] q ? [SEP] part [SEP] with parts of 3 tokens, which overlap by 1: "a b c", "c d ee", of
// which the last word is two pieces, and "e f".
TEST(QuestionAnsweringTest, LabelsAreTokensOfTheWindow) {
  const auto data =
      MakeQuestionAnswering(File("a b c d ee f", {"q?", {"d"}, {6}}), Tokenizer(), 8, 1, kInOrder);
  ASSERT_TRUE(data.ok()) << data.status();
  const TrainingBatch batch = (*data)->Batch(0);
  ASSERT_EQ(batch.sequences, 3);
  EXPECT_THAT(batch.ids, ElementsAre(2, 12, 13, 3, 5, 6, 7, 3,  //
                                     2, 12, 13, 3, 7, 8, 9, 3,  //
                                     2, 12, 13, 3, 9, 10, 11, 3));
  EXPECT_THAT(batch.labels, ElementsAre(0, 0, 5, 5, 0, 0));
}

// An answer that a window has only in part is not in it.
TEST(QuestionAnsweringTest, PartsOfAnAnswerAreNone) {
  const auto labels = [](const std::string& answer, int64_t start) {
    const auto data = MakeQuestionAnswering(File("a b c d ee f", {"q?", {answer}, {start}}),
                                            Tokenizer(), 8, 1, kInOrder);
    return (*data)->Batch(0).labels;
  };
  EXPECT_THAT(labels("b c", 2), ElementsAre(5, 6, 0, 0, 0, 0));
  EXPECT_THAT(labels("c d", 4), ElementsAre(0, 0, 4, 5, 0, 0));
  EXPECT_THAT(labels("b c d", 2), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(labels("ee f", 8), ElementsAre(0, 0, 0, 0, 4, 6));
  EXPECT_THAT(labels(" ", 1), ElementsAre(0, 0, 0, 0, 0, 0));
  // White space at the ends, and half of a word, stand for the words they touch.
  EXPECT_THAT(labels(" b ", 1), ElementsAre(5, 5, 0, 0, 0, 0));
}

TEST(QuestionAnsweringTest, PlacesAreCodePoints) {
  const auto data = MakeQuestionAnswering(File("\u00e9\U0001f600 b c", {"q", {"b"}, {3}}),
                                          Tokenizer(), 16, 0, kInOrder);
  ASSERT_TRUE(data.ok()) << data.status();
  const TrainingBatch batch = (*data)->Batch(0);
  EXPECT_EQ(batch.ids[batch.labels[0]], 6);
  EXPECT_EQ(batch.labels[0], batch.labels[1]);
}

TEST(QuestionAnsweringTest, QuestionsWithoutAnswerPointAtCls) {
  const auto data = MakeQuestionAnswering(File("a b", {"q", {}, {}}), Tokenizer(), 8, 0, kInOrder);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT((*data)->Batch(0).labels, ElementsAre(0, 0));
}

TEST(QuestionAnsweringTest, LongQuestionsAreLeftOut) {
  SquadFile file = File("a b", {"q q q q q q q", {"a"}, {0}});
  file.paragraphs[0].questions.push_back({"q", {"a"}, {0}});
  const auto data = MakeQuestionAnswering(file, Tokenizer(), 8, 0, kInOrder);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->Batch(0).sequences, 1);
}

TEST(QuestionAnsweringTest, RefusesAnswersThatAreNotThere) {
  for (const int64_t start : {-1, 1, 2, 100}) {
    EXPECT_THAT(Message(MakeQuestionAnswering(File("a b", {"q?", {"a"}, {start}}), Tokenizer(), 8,
                                              0, kInOrder)
                            .status()),
                HasSubstr("the answer 'a' to 'q?' does not stand at answer_start"));
  }
  EXPECT_FALSE(
      MakeQuestionAnswering(File("a", {"q", {""}, {0}}), Tokenizer(), 8, 0, kInOrder).ok());
  EXPECT_FALSE(
      MakeQuestionAnswering(File("a", {"q", {"a"}, {0}}), Tokenizer(), 8, -1, kInOrder).ok());
}

}  // namespace
}  // namespace hippodrome::question_answering_test
