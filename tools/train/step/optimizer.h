// AdamW over the parameters of a model.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_OPTIMIZER_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/train/step/parameter_blocks.h"
#include "tools/train/step/parameter_groups.h"

namespace hippodrome {

// A block of a parameter, with what the optimizer keeps of it.
struct OptimizedBlock {
  ParameterBlock block;
  ParameterGroup group;
  OwnedTensor m, v;     // first and second moment
  OwnedTensor average;  // moving average of the values; empty without
};

// Not thread-safe; backend and parameters must outlive it.
class Optimizer {
 public:
  // Trains the blocks of those `buckets` that it `owns`. Averages start at the values.
  Optimizer(TrainingBackend& backend, const std::vector<Bucket>& buckets,
            const std::function<bool(size_t bucket)>& owns, ModelFamily family,
            const OptimizerOptions& options);

  // The square of the Euclidean norm of each bucket's gradients; 0 for those of others.
  std::vector<double> SquaredNorms();
  // Step number `step`, from 1, with gradients of norm `norm` together, at `fraction` of the
  // highest rates.
  void Step(int64_t step, double fraction, double norm);

  // Of each bucket; none in those of others.
  const std::vector<std::vector<OptimizedBlock>>& buckets() const { return buckets_; }

 private:
  TrainingBackend& backend_;
  OptimizerOptions options_;
  std::vector<std::vector<OptimizedBlock>> buckets_;
};

// The norm of the gradients of all buckets together, of which each has its square once in
// `squares`: those of SquaredNorms(), of one optimizer or added up over ranks. The order of the sum
// is fixed.
double GradientNorm(const std::vector<double>& squares);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_OPTIMIZER_H_
