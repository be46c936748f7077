// AdamW over the parameters of a model.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_OPTIMIZER_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "kernels/tape/parameters.h"
#include "tools/train/step/parameter_groups.h"

namespace hippodrome {

// A parameter that is trained, with what the optimizer keeps of it.
struct OptimizedParameter {
  Parameter* parameter = nullptr;
  ParameterGroup group;
  OwnedTensor m, v;     // first and second moment
  OwnedTensor average;  // moving average of the values; empty without
};

// Not thread-safe; backend and parameters must outlive it.
class Optimizer {
 public:
  // Trains the parameters that have a gradient and are no constants. Averages start at the values.
  Optimizer(TrainingBackend& backend, Parameters& parameters, ModelFamily family,
            const OptimizerOptions& options);

  // The Euclidean norm of all gradients together.
  double GradientNorm();
  // Step number `step`, from 1, with gradients of norm `norm`, at `fraction` of the highest rates.
  void Step(int64_t step, double fraction, double norm);

  std::vector<OptimizedParameter>& all() { return all_; }
  int64_t size() const { return size_; }  // values in all

 private:
  TrainingBackend& backend_;
  OptimizerOptions options_;
  std::vector<OptimizedParameter> all_;
  int64_t size_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_OPTIMIZER_H_
