#include "tools/train/data/text_classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/base/status.h"

namespace hippodrome::text_classification_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const WordPieceTokenizer& Tokenizer() {
  static const auto* const tokenizer =
      new auto(*WordPieceTokenizer::Parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n"));
  return **tokenizer;
}

const BatchOptions kInOrder = {.batch_size = 2, .evaluation = true};

TEST(TextClassificationTest, PairsHaveTypes) {
  const auto texts = ReadLabelledTexts("yes\ta b\tc\nno\ta\ta b c a b c\nyes\tb\tb\n",
                                       {.first = "1", .second = "2", .label = "0"});
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_THAT(LabelsOf(*texts), ElementsAre("no", "yes"));
  const auto data = MakeTextClassification(*texts, LabelsOf(*texts), Tokenizer(), 7, 0.5, kInOrder);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->batches(), 2);
  const TrainingBatch batch = (*data)->Batch(0);
  EXPECT_EQ(batch.sequences, 2);
  EXPECT_EQ(batch.length, 7);
  EXPECT_THAT(batch.ids, ElementsAre(2, 5, 6, 3, 7, 3, 0, 2, 5, 3, 5, 6, 7, 3));
  EXPECT_THAT(batch.types, ElementsAre(0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(batch.mask, ElementsAre(1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0));
  EXPECT_THAT(batch.targets, IsEmpty());
  EXPECT_THAT((*data)->Batch(1).labels, ElementsAre(1));
}

TEST(TextClassificationTest, RegressionHasTargets) {
  const auto texts = ReadLabelledTexts("2.5\ta\n-1\tb\n", {.first = "1", .label = "0"});
  const auto data = MakeTextRegression(*texts, Tokenizer(), 4, 0.5, kInOrder);
  ASSERT_TRUE(data.ok()) << data.status();
  const TrainingBatch batch = (*data)->Batch(0);
  EXPECT_THAT(batch.ids, ElementsAre(2, 5, 3, 0, 2, 6, 3, 0));
  EXPECT_THAT(batch.targets, ElementsAre(2.5f, -1.0f));
  EXPECT_THAT(batch.labels, IsEmpty());
}

TEST(TextClassificationTest, TrainingDropsOtherTokensInEachEpoch) {
  std::string words;
  for (int i = 0; i < 1000; ++i) words += " a";
  const std::string table = "x\t" + words + "\n";
  const auto texts = ReadLabelledTexts(table, {.first = "1", .label = "0"});
  const auto data = MakeTextClassification(*texts, {"x"}, Tokenizer(), 1010, 0.25, {.seed = 3});
  ASSERT_TRUE(data.ok()) << data.status();
  const std::vector<int32_t> first = (*data)->Batch(0).ids;
  EXPECT_EQ(first[0], Tokenizer().cls());
  EXPECT_EQ(first[1001], Tokenizer().sep());
  EXPECT_EQ(std::count(first.begin(), first.end(), Tokenizer().pad()), 8);
  // A quarter, within 5 standard deviations.
  EXPECT_NEAR(std::count(first.begin(), first.end(), Tokenizer().mask()), 250, 69);
  EXPECT_EQ(first, (*data)->Batch(0).ids);
  EXPECT_NE(first, (*data)->Batch(1).ids);
}

TEST(TextClassificationTest, NamesWhatIsWrong) {
  const auto texts = ReadLabelledTexts("x\ta\ny\tb\n", {.first = "1", .label = "0"});
  EXPECT_THAT(Message(MakeTextClassification(*texts, {"x"}, Tokenizer(), 4, 0, {}).status()),
              HasSubstr("line 2: the label is 'y'"));
  EXPECT_THAT(Message(MakeTextRegression(*texts, Tokenizer(), 4, 0, {}).status()),
              HasSubstr("expected a number"));
  EXPECT_THAT(Message(MakeTextClassification(*texts, {"x", "y"}, Tokenizer(), 2, 0, {}).status()),
              HasSubstr("expected at least 3"));
  EXPECT_FALSE(
      MakeTextClassification(*texts, {"x", "y"}, Tokenizer(), 4, 0, {.batch_size = 3}).ok());
}

}  // namespace
}  // namespace hippodrome::text_classification_test
