// A model in training, whatever its family and objective.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_TRAINEE_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_TRAINEE_H_

#include <cstdint>

#include "tools/train/data/training_batch.h"

namespace hippodrome {

// Of one or several batches. A term is a labelled token, or a sequence where those are labelled.
struct BatchLoss {
  double sum = 0;       // of the terms, in nats or squares
  int64_t terms = 0;    // of loss
  int64_t correct = 0;  // of the judged terms, those whose largest logit is that of the label
  int64_t judged = 0;

  BatchLoss& operator+=(const BatchLoss& other) {
    sum += other.sum;
    terms += other.terms;
    correct += other.correct;
    judged += other.judged;
    return *this;
  }
  double mean() const { return terms == 0 ? 0 : sum / static_cast<double>(terms); }
  double accuracy() const {
    return judged == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(judged);
  }
};

// Computes with one tape, in whose parameters' gradients the results are. Not thread-safe.
class Trainee {
 public:
  virtual ~Trainee() = default;
  // The terms of loss that `batch` has.
  virtual int64_t Terms(const TrainingBatch& batch) const = 0;
  // Adds the gradients of `scale` times the sum of losses. `seed` decides what dropout drops.
  // REQUIRES: no more sequences and tokens than it was made for.
  virtual BatchLoss Learn(const TrainingBatch& batch, double scale, uint64_t seed) = 0;
  // Without gradients and dropout. `judge`: also which terms are right.
  virtual BatchLoss Evaluate(const TrainingBatch& batch, bool judge) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_TRAINEE_H_
