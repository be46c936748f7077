// A model in training, whatever its family and objective.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_TRAINEE_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_TRAINEE_H_

#include <algorithm>
#include <cstdint>

#include "tools/train/data/training_batch.h"

namespace hippodrome {

// How the losses of a batch are averaged: the mean is the sum of weighted terms over `count`.
struct LossTerms {
  int64_t count = 0;  // labelled tokens, or sequences where those are labelled
  // The weights of first and last tokens of answers: sequences over those of them that lie inside
  // their sequence, for the others have no loss; 0 where none does. 1 for all other labels.
  double first = 1;
  double last = 1;

  double scale() const { return 1 / static_cast<double>(std::max<int64_t>(count, 1)); }
};

// Of one or several batches. A term is a labelled token, or a sequence where those are labelled.
struct BatchLoss {
  double sum = 0;       // of the weighted terms, in nats or squares
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
  virtual LossTerms Terms(const TrainingBatch& batch) const = 0;
  // Adds the gradients of what `batch`, a part of a batch with `terms`, has of the mean of losses.
  // `seed` decides what dropout drops. REQUIRES: no more sequences and tokens than it was made for.
  virtual BatchLoss Learn(const TrainingBatch& batch, const LossTerms& terms, uint64_t seed) = 0;
  // Without gradients and dropout. `judge`: also which terms are right.
  virtual BatchLoss Evaluate(const TrainingBatch& batch, bool judge) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_TRAINEE_H_
