// The synthetic tasks on which H3 was designed: sequences of a made-up vocabulary whose last token
// follows from the others.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_SYNTHETIC_TASKS_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_SYNTHETIC_TASKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/train/data/batch_sampler.h"
#include "tools/train/data/training_batch.h"

namespace hippodrome {

enum class SyntheticKind : uint8_t {
  // Random tokens, one of them "=>", and "=>" at the end: what followed the first follows again.
  kInductionHead,
  // Keys, each followed by its value, "=>" and a key: its value follows. Keys are one half of the
  // vocabulary and values the other; each sequence has a map of its own.
  kAssociativeRecall,
};

// By default as published. Ids: 0 is ".", which never appears, vocabulary - 1 is "=>", and between
// them are the tokens of the task.
struct SyntheticTask {
  SyntheticKind kind = SyntheticKind::kInductionHead;
  int64_t vocabulary = 20;  // 4 to 2^16
  int64_t length = 30;      // of what comes before the last "=>", 4 to 2^16; even for recall
  int64_t train = 5000;     // sequences, 1 to 2^20
  int64_t test = 500;
  uint64_t seed = 0;
};

using SyntheticSequences = std::vector<std::vector<int32_t>>;

// No sequence twice in either; one of `train` may be in `test` too.
struct SyntheticExamples {
  SyntheticSequences train;
  SyntheticSequences test;
};

// Bit for bit the sequences of the published generator. Errors: kInvalidArgument for a field that
// is not as above, or when the task has too few different sequences.
absl::StatusOr<SyntheticExamples> MakeSyntheticExamples(const SyntheticTask& task);

// ids are all tokens but the last, labels all but the first. Evaluation has labels of the last
// position alone, since the others are random. Errors: kInvalidArgument as of BatchSampler.
absl::StatusOr<std::unique_ptr<TrainingData>> MakeSyntheticData(SyntheticSequences sequences,
                                                                const BatchOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_SYNTHETIC_TASKS_H_
