// Whole texts, or pairs of texts, with a class or a score.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_TEXT_CLASSIFICATION_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_TEXT_CLASSIFICATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/wordpiece.h"
#include "tools/evaluate/labelled_texts.h"
#include "tools/train/data/batch_sampler.h"
#include "tools/train/data/training_batch.h"

namespace hippodrome {

// The different labels of the texts, sorted.
std::vector<std::string> LabelsOf(const LabelledTexts& texts);

// Texts are laid out as EncodePair does, shortened to `length` tokens and padded to them. In
// training, a token of a text becomes [MASK] with probability `token_dropout`. A batch's labels are
// places in `labels`. Errors: kInvalidArgument for a label that is not among them, a
// length below 3, and when there are too few texts for a batch.
absl::StatusOr<std::unique_ptr<TrainingData>> MakeTextClassification(
    const LabelledTexts& texts, const std::vector<std::string>& labels,
    const WordPieceTokenizer& tokenizer, int64_t length, double token_dropout,
    const BatchOptions& options);

// The same with a batch's targets, the numbers that the labels are. Errors: likewise, and for a
// label that is no number.
absl::StatusOr<std::unique_ptr<TrainingData>> MakeTextRegression(
    const LabelledTexts& texts, const WordPieceTokenizer& tokenizer, int64_t length,
    double token_dropout, const BatchOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_TEXT_CLASSIFICATION_H_
