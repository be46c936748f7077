#include "tools/train/data/text_classification.h"

#include <set>
#include <utility>

#include "engine/base/status.h"
#include "engine/tokenizer/encode_pair.h"
#include "tools/evaluate/label_names.h"
#include "tools/train/data/encoded_examples.h"

namespace hippodrome {
namespace {

// All texts, still without labels.
absl::StatusOr<EncodedExamples> EncodeTexts(const LabelledTexts& texts,
                                            const WordPieceTokenizer& tokenizer, int64_t length,
                                            int64_t row_labels) {
  HIPPODROME_ASSIGN_OR_RETURN(EncodedExamples data, NoExamples(tokenizer, length, row_labels));
  for (const LabelledText& text : texts.examples) {
    const std::vector<WordPiece> first = tokenizer.Tokenize(text.first);
    const std::vector<WordPiece> second = tokenizer.Tokenize(text.second);
    EncodedText encoded =
        EncodePair(tokenizer, first, second, texts.pairs, length, Truncation::kLongestFirst);
    data.examples.push_back({.ids = std::move(encoded.ids), .types = std::move(encoded.types)});
  }
  return data;
}

}  // namespace

std::vector<std::string> LabelsOf(const LabelledTexts& texts) {
  std::set<std::string> labels;
  for (const LabelledText& text : texts.examples) labels.emplace(text.label);
  return {labels.begin(), labels.end()};
}

absl::StatusOr<std::unique_ptr<TrainingData>> MakeTextClassification(
    const LabelledTexts& texts, const std::vector<std::string>& labels,
    const WordPieceTokenizer& tokenizer, int64_t length, double token_dropout,
    const BatchOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto classes, ClassesOf(texts.examples, labels));
  HIPPODROME_ASSIGN_OR_RETURN(EncodedExamples data, EncodeTexts(texts, tokenizer, length, 1));
  for (size_t i = 0; i < classes.size(); ++i) {
    data.examples[i].labels = {static_cast<int32_t>(classes[i])};
  }
  data.token_dropout = token_dropout;
  return MakeEncodedData(std::move(data), options);
}

absl::StatusOr<std::unique_ptr<TrainingData>> MakeTextRegression(
    const LabelledTexts& texts, const WordPieceTokenizer& tokenizer, int64_t length,
    double token_dropout, const BatchOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto scores, ScoresOf(texts.examples));
  HIPPODROME_ASSIGN_OR_RETURN(EncodedExamples data, EncodeTexts(texts, tokenizer, length, 0));
  for (size_t i = 0; i < scores.size(); ++i) {
    data.examples[i].target = static_cast<float>(scores[i]);
  }
  data.token_dropout = token_dropout;
  return MakeEncodedData(std::move(data), options);
}

}  // namespace hippodrome
