#include "tools/train/step/optimizer.h"

#include <cmath>
#include <utility>

#include "tools/train/step/trained_names.h"

namespace hippodrome {

Optimizer::Optimizer(TrainingBackend& backend, Parameters& parameters, ModelFamily family,
                     const OptimizerOptions& options)
    : backend_(backend), options_(options) {
  for (Parameter& parameter : parameters.all()) {
    if (parameter.gradient.data == nullptr || !IsTrained(parameter.name)) continue;
    const Tensor w = parameter.value;
    OptimizedParameter p = {.parameter = &parameter,
                            .group = GroupOf(options, family, parameter.name),
                            .m = backend.NewTensor(w.rows, w.cols),
                            .v = backend.NewTensor(w.rows, w.cols),
                            .average = {}};
    if (options.ema > 0) {
      p.average = backend.NewTensor(w.rows, w.cols);
      backend.Copy(w, p.average);
    }
    size_ += w.rows * w.cols;
    all_.push_back(std::move(p));
  }
}

double Optimizer::GradientNorm() {
  double sum = 0;
  for (const OptimizedParameter& p : all_) sum += backend_.SumOfSquares(p.parameter->gradient);
  return std::sqrt(sum);
}

void Optimizer::Step(int64_t step, double fraction, double norm) {
  const bool clips = options_.clip > 0 && norm > options_.clip;
  AdamWStep adamw = {.beta1 = options_.beta1,
                     .beta2 = options_.beta2,
                     .epsilon = options_.epsilon,
                     .gradient_scale = clips ? options_.clip / norm : 1,
                     .step = step};
  for (OptimizedParameter& p : all_) {
    adamw.rate = fraction * (p.group.ssm ? SsmRate(options_) : options_.rate);
    adamw.weight_decay = p.group.decays ? options_.weight_decay : 0;
    const Tensor w = p.parameter->value;
    backend_.AdamW(adamw, p.parameter->gradient, p.m, p.v, w);
    if (options_.ema > 0) backend_.MovingAverage(w, options_.ema, p.average);
  }
}

}  // namespace hippodrome
