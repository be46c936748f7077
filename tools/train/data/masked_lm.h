// Masked language modelling as BERT's successors pretrain: tokens are hidden and predicted from
// both sides.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_MASKED_LM_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_MASKED_LM_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/tokenizer/wordpiece.h"
#include "tools/train/data/batch_sampler.h"
#include "tools/train/data/tokenized_text.h"
#include "tools/train/data/training_batch.h"

namespace hippodrome {

struct MaskedLmOptions {
  int64_t length = 128;          // T, at least 3
  double masked_part = 0.15;     // of an example's tokens, [CLS] and [SEP] counted too
  int64_t most_masked = 20;      // of one example
  double short_documents = 0.1;  // probability that a document's examples aim at another length
};

// An example is [CLS] sentences [SEP], padded to T. Sentences of one document are collected until
// they have T - 2 tokens or more, and what is too many goes at random from the front or the back;
// the last example of a document is as long as what is left. With probability `short_documents` all
// examples of a document are collected up to a length drawn from [2, T - 2] instead.
//
// n = min(most_masked, max(1, round(masked_part * tokens))) places other than [CLS] and [SEP] have
// labels. There the token becomes [MASK] with probability 0.8, stays with 0.1 and becomes any of
// the vocabulary with 0.1. Each epoch draws places anew (the published data had ten fixed
// drawings); which sentences make an example depends on the seed alone.
//
// Errors: kInvalidArgument for a text of another tokenizer or without sentences, for options that
// are out of range, and when there are too few examples for a batch.
absl::StatusOr<std::unique_ptr<TrainingData>> MakeMaskedLm(TokenizedText text,
                                                           const WordPieceTokenizer& tokenizer,
                                                           const MaskedLmOptions& options,
                                                           const BatchOptions& batches);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_MASKED_LM_H_
