// What `hippodrome gradients` reads: token ids and what should have been answered.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_INPUT_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_INPUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "tools/train/data/training_batch.h"

namespace hippodrome {

// input_ids I64 [B, L] and labels I64 [B, L], where -100 counts nothing; labels[b, t] is what the
// logits of position t should say, the next token for a language model; without labels those are
// the ids, one to the left. Errors name file and tensor, what was found and expected.
absl::StatusOr<TrainingBatch> ReadGradientInput(const std::string& path, const H3Config& config);

// The same for an encoder, with attention_mask and token_type_ids as for `hippodrome forward`, and:
// for classification labels I64 [B]; for regression labels F32 [B]; for question answering
// start_positions and end_positions I64 [B]: those below 0 stand for 0, and those from L on count
// nothing.
absl::StatusOr<TrainingBatch> ReadGradientInput(const std::string& path, const BigsConfig& config);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_INPUT_H_
