// A batch goes through a model in parts, micro-batches of up to so many sequences.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_MICRO_BATCH_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_MICRO_BATCH_H_

#include <cstdint>
#include <vector>

#include "kernels/tape/tape.h"
#include "tools/train/data/training_batch.h"
#include "tools/train/step/gradient_all_reduce.h"
#include "tools/train/step/gradient_sum.h"
#include "tools/train/step/trainee.h"

namespace hippodrome {

// Sequences [first, first + count) of `batch`.
TrainingBatch SliceBatch(const TrainingBatch& batch, int64_t first, int64_t count);

// How micro-batches are learned.
struct MicroBatches {
  int64_t sequences = 1;  // of each, at most
  LossTerms terms;        // of the whole batch
  uint64_t seed = 0;      // plus its first sequence decides what dropout drops in one
};

// Replaces the gradients by those of what the sequences of `share` have of the mean loss of
// `batch`, one micro-batch added to another; with `sum` (null: there is one device) by the sums of
// those of all devices. Gives the loss of each micro-batch. REQUIRES: the share is not empty.
std::vector<BatchLoss> Learn(const TrainingBatch& batch, const MicroBatches& how, Share share,
                             GradientAllReduce* sum, Tape& tape, Trainee& trainee);

// The same on processors, for the share that `sum` has; its Finish() completes the gradients.
// `tape` must tell it what is complete.
std::vector<BatchLoss> Learn(const TrainingBatch& batch, const MicroBatches& how, GradientSum& sum,
                             Tape& tape, Trainee& trainee);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_MICRO_BATCH_H_
