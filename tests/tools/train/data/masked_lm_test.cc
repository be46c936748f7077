#include "tools/train/data/masked_lm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "engine/base/status.h"

namespace hippodrome::masked_lm_test {
namespace {

using testing::HasSubstr;

constexpr int32_t kPad = 0;
constexpr int32_t kCls = 2;
constexpr int32_t kSep = 3;
constexpr int32_t kMask = 4;
constexpr int64_t kVocab = 10005;

const WordPieceTokenizer& Tokenizer() {
  static const auto* const tokenizer = [] {
    std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (int i = 0; i < 10000; ++i) vocab += "w" + std::to_string(i) + "\n";
    return new auto(*WordPieceTokenizer::Parse(vocab));
  }();
  return **tokenizer;
}

// Documents of sentences of so many tokens, which count from 5 on.
TokenizedText Text(const std::vector<std::vector<int64_t>>& documents) {
  TokenizedText text = {.kind = TokenizerKind::kWordPiece, .vocab_size = kVocab};
  for (const auto& document : documents) {
    for (const int64_t sentence : document) {
      for (int64_t i = 0; i < sentence; ++i) {
        text.tokens.push_back(static_cast<int32_t>(5 + text.tokens.size()));
      }
      text.sentence_ends.push_back(std::ssize(text.tokens));
    }
    text.document_ends.push_back(std::ssize(text.sentence_ends));
  }
  return text;
}

// The tokens between [CLS] and [SEP] of one row, as they were before masking.
std::vector<int32_t> Original(const TrainingBatch& batch, int64_t row) {
  const auto at = [&](const std::vector<int32_t>& values, int64_t t) {
    return values[row * batch.length + t];
  };
  EXPECT_EQ(at(batch.ids, 0), kCls);
  EXPECT_EQ(at(batch.labels, 0), -1);
  std::vector<int32_t> tokens;
  int64_t end = 1;
  for (; end < batch.length && at(batch.mask, end) == 1; ++end) {
    const int32_t label = at(batch.labels, end);
    tokens.push_back(label >= 0 ? label : at(batch.ids, end));
  }
  EXPECT_EQ(tokens.back(), kSep);
  EXPECT_EQ(at(batch.labels, end - 1), -1);
  for (; end < batch.length; ++end) {
    EXPECT_EQ(at(batch.ids, end), kPad);
    EXPECT_EQ(at(batch.labels, end), -1);
    EXPECT_EQ(at(batch.mask, end), 0);
  }
  tokens.pop_back();
  return tokens;
}

std::vector<std::vector<int32_t>> AllExamples(const TokenizedText& text,
                                              const MaskedLmOptions& options) {
  const auto data =
      MakeMaskedLm(text, Tokenizer(), options, {.batch_size = 2, .seed = 1, .evaluation = true});
  EXPECT_TRUE(data.ok()) << data.status();
  std::vector<std::vector<int32_t>> examples;
  for (int64_t i = 0; i < (*data)->batches(); ++i) {
    const TrainingBatch batch = (*data)->Batch(i);
    for (int64_t row = 0; row < batch.sequences; ++row) examples.push_back(Original(batch, row));
  }
  return examples;
}

// T - 2 = 6: sentences are collected up to 6 tokens or more, and documents are not crossed.
TEST(MaskedLmTest, CollectsSentencesOfOneDocument) {
  const auto examples =
      AllExamples(Text({{2, 3, 1, 4, 1}, {1, 6, 2}}), {.length = 8, .short_documents = 0});
  ASSERT_EQ(examples.size(), 4U);
  EXPECT_THAT(examples[0], testing::ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_THAT(examples[1], testing::ElementsAre(11, 12, 13, 14, 15));
  // One too many: it goes from the front or from the back.
  EXPECT_EQ(examples[2].size(), 6U);
  EXPECT_THAT(examples[2][0], testing::AnyOf(16, 17));
  EXPECT_EQ(examples[2][5], examples[2][0] + 5);
  EXPECT_THAT(examples[3], testing::ElementsAre(23, 24));
}

// Of a sentence of 200 tokens in a window of 100, binomially many go from the front: 50 +- 5 each.
TEST(MaskedLmTest, ShortensAtBothEnds) {
  const auto data = MakeMaskedLm(Text({{200}}), Tokenizer(), {.length = 102}, {.batch_size = 1});
  ASSERT_TRUE(data.ok()) << data.status();
  double mean = 0;
  for (int64_t epoch = 0; epoch < 400; ++epoch) {
    const auto tokens = Original((*data)->Batch(epoch), 0);
    ASSERT_EQ(tokens.size(), 100U);
    mean += static_cast<double>(tokens[0] - 5) / 400;
  }
  EXPECT_NEAR(mean, 50, 5 * 5 / std::sqrt(400.0));
}

TEST(MaskedLmTest, SomeDocumentsAimLower) {
  std::vector<std::vector<int64_t>> documents(500, std::vector<int64_t>(30, 1));
  const auto examples = AllExamples(Text(documents), {.length = 32});
  // Documents of 30 tokens: one example each, more of those with a lower target.
  std::map<int32_t, int64_t> of_document;
  for (const auto& example : examples) ++of_document[(example[0] - 5) / 30];
  const double shorter = static_cast<double>(std::count_if(
      of_document.begin(), of_document.end(), [](const auto& entry) { return entry.second > 1; }));
  EXPECT_EQ(of_document.size(), 500U);
  // A target of 30 does not show; 5 standard deviations.
  const double p = 0.1 * 28 / 29;
  EXPECT_NEAR(shorter, 500 * p, 5 * std::sqrt(500 * p * (1 - p)));
}

TEST(MaskedLmTest, MasksAsManyAsPublished) {
  // Tokens with [CLS] and [SEP] to labels: 15 %, halves to even, 1 to 20.
  const std::map<int64_t, int64_t> expected = {{3, 1},   {10, 2},   {30, 4},  {50, 8},
                                               {90, 14}, {128, 19}, {200, 20}};
  for (const auto& [tokens, labels] : expected) {
    const auto data =
        MakeMaskedLm(Text({{tokens - 2}}), Tokenizer(), {.length = tokens}, {.batch_size = 1});
    ASSERT_TRUE(data.ok()) << data.status();
    const TrainingBatch batch = (*data)->Batch(0);
    const auto& all = batch.labels;
    EXPECT_EQ(std::ssize(all) - std::count(all.begin(), all.end(), -1), labels) << tokens;
  }
}

// 80 %, 10 % and 10 % of n labels, each within 5 standard deviations; every place alike.
TEST(MaskedLmTest, ReplacesTokensAsPublished) {
  const auto data =
      MakeMaskedLm(Text({{98}}), Tokenizer(), {.length = 100}, {.batch_size = 1, .seed = 9});
  ASSERT_TRUE(data.ok()) << data.status();
  double masked = 0;
  double kept = 0;
  double labels = 0;
  std::vector<double> places(100);
  std::set<int32_t> others;
  for (int64_t epoch = 0; epoch < 2000; ++epoch) {
    const TrainingBatch batch = (*data)->Batch(epoch);
    for (size_t t = 0; t < 100; ++t) {
      if (batch.labels[t] < 0) continue;
      ++labels;
      ++places[t];
      masked += batch.ids[t] == kMask;
      kept += batch.ids[t] == batch.labels[t];
      if (batch.ids[t] != kMask) others.insert(batch.ids[t]);
    }
  }
  EXPECT_EQ(labels, 15 * 2000);
  EXPECT_NEAR(masked, 0.8 * labels, 5 * std::sqrt(labels * 0.8 * 0.2));
  EXPECT_NEAR(kept, 0.1 * labels, 5 * std::sqrt(labels * 0.1 * 0.9));
  const double mean = labels / 98;
  for (size_t t = 1; t < 99; ++t) EXPECT_NEAR(places[t], mean, 5 * std::sqrt(mean));
  EXPECT_GT(*others.rbegin(), kVocab - 200);
  EXPECT_GT(others.size(), 2000U);
}

TEST(MaskedLmTest, EpochsDifferAndBatchesAreRepeatable) {
  const auto data =
      MakeMaskedLm(Text({{50}, {60}}), Tokenizer(), {.length = 64}, {.batch_size = 2, .seed = 4});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->Batch(3).ids, (*data)->Batch(3).ids);
  EXPECT_NE((*data)->Batch(3).ids, (*data)->Batch(4).ids);
}

TEST(MaskedLmTest, RefusesOtherTextsAndOptions) {
  const auto error = [](TokenizedText text, const MaskedLmOptions& options) {
    return Message(MakeMaskedLm(std::move(text), Tokenizer(), options, {}).status());
  };
  EXPECT_THAT(error(Text({{5}}), {.length = 2}), HasSubstr("expected at least 3"));
  EXPECT_THAT(error(Text({{5}}), {.masked_part = 1.5}), HasSubstr("must be 0 to 1"));
  EXPECT_THAT(error(Text({{5}}), {.most_masked = 0}), HasSubstr("at least 1"));
  EXPECT_THAT(error({.vocab_size = kVocab, .tokens = {5}}, {}), HasSubstr("not encoded by"));
  EXPECT_THAT(error(Text({}), {}), HasSubstr("no sentences"));
}

}  // namespace
}  // namespace hippodrome::masked_lm_test
