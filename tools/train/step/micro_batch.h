// Parts of a batch that go through a model at a time.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_MICRO_BATCH_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_MICRO_BATCH_H_

#include <cstdint>

#include "tools/train/data/training_batch.h"

namespace hippodrome {

// Sequences [first, first + count) of `batch`.
TrainingBatch SliceBatch(const TrainingBatch& batch, int64_t first, int64_t count);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_MICRO_BATCH_H_
