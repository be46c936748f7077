// Examples whose tokens and labels are fixed: those of the fine-tuned tasks.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_ENCODED_EXAMPLES_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_ENCODED_EXAMPLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/wordpiece.h"
#include "tools/train/data/batch_sampler.h"
#include "tools/train/data/training_batch.h"

namespace hippodrome {

struct EncodedExample {
  std::vector<int32_t> ids;     // not padded
  std::vector<int32_t> types;   // as many
  std::vector<int32_t> labels;  // a class, two places, one of each token; or none
  float target = 0;
};

struct EncodedExamples {
  int64_t length = 0;  // T: inputs are padded to it, none is longer
  // The tokens that pad, and those of the layout.
  int32_t pad = 0, cls = 0, sep = 0, mask = 0;
  int64_t row_labels =
      0;  // of each row of a batch, filled up with -1; 0: rows have targets instead
  double token_dropout = 0;  // how likely a token of the text becomes [MASK] in training
  std::vector<EncodedExample> examples;
};

// Batches with ids, types and mask, and labels or targets. Which tokens are dropped changes with
// the epoch. Errors: as of BatchSampler.
absl::StatusOr<std::unique_ptr<TrainingData>> MakeEncodedData(EncodedExamples examples,
                                                              const BatchOptions& options);

// Examples to come, of inputs of `length` tokens. Errors: kInvalidArgument below 3 tokens, which
// leave nothing between [CLS] and [SEP].
absl::StatusOr<EncodedExamples> NoExamples(const WordPieceTokenizer& tokenizer, int64_t length,
                                           int64_t row_labels);

// Appends `values` and as many `fill` as make them `length`.
void AppendPadded(const std::vector<int32_t>& values, int64_t length, int32_t fill,
                  std::vector<int32_t>& row);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_ENCODED_EXAMPLES_H_
