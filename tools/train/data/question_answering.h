// Question answering: questions whose answers are parts of a context.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_QUESTION_ANSWERING_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_QUESTION_ANSWERING_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/tokenizer/wordpiece.h"
#include "tools/evaluate/squad_file.h"
#include "tools/train/data/batch_sampler.h"
#include "tools/train/data/training_batch.h"

namespace hippodrome {

// The windows of QuestionWindows() of at most `length` tokens, which overlap by `stride`, padded to
// `length`. Each is an example; its labels are the first and the last token of the first answer, or
// 0 twice, which is [CLS], when the window has not all of it or there is none. A question that
// leaves no room for a context is left out.
//
// Errors: kInvalidArgument for an answer that does not stand where the file says, with its
// question, a length below 3, a negative stride, and when there are too few windows for a batch.
absl::StatusOr<std::unique_ptr<TrainingData>> MakeQuestionAnswering(
    const SquadFile& file, const WordPieceTokenizer& tokenizer, int64_t length, int64_t stride,
    const BatchOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_QUESTION_ANSWERING_H_
