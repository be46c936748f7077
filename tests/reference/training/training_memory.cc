// The training operations of the reference on memory, and the optimizer.
#include <cmath>

#include "tests/reference/matrix.h"
#include "tests/reference/training/training_reference.h"

namespace hippodrome::reference {

void TrainingReference::Fill(float value, Tensor x) {
  ForEach(x, [&](int64_t r, int64_t c) { At(x, r, c) = value; });
}

void TrainingReference::Copy(Tensor x, Tensor y) {
  ForEach(x, [&](int64_t r, int64_t c) { At(y, r, c) = At(x, r, c); });
}

void TrainingReference::Add(Tensor x, Tensor y) {
  ForEach(x, [&](int64_t r, int64_t c) { At(y, r, c) += At(x, r, c); });
}

double TrainingReference::SumOfSquares(Tensor x) {
  double sum = 0;
  ForEach(x, [&](int64_t r, int64_t c) { sum += At(x, r, c) * At(x, r, c); });
  return sum;
}

void TrainingReference::AdamW(const AdamWStep& step, Tensor gradient, Tensor m, Tensor v,
                              Tensor w) {
  const auto t = static_cast<double>(step.step);
  ForEach(w, [&](int64_t r, int64_t c) {
    const double g = step.gradient_scale * At(gradient, r, c);
    At(m, r, c) = step.beta1 * At(m, r, c) + (1 - step.beta1) * g;
    At(v, r, c) = step.beta2 * At(v, r, c) + (1 - step.beta2) * g * g;
    const double mean = At(m, r, c) / (1 - std::pow(step.beta1, t));
    const double square = At(v, r, c) / (1 - std::pow(step.beta2, t));
    At(w, r, c) -= step.rate * step.weight_decay * At(w, r, c);
    At(w, r, c) -= step.rate * mean / (std::sqrt(square) + step.epsilon);
  });
}

void TrainingReference::MovingAverage(Tensor x, double decay, Tensor average) {
  ForEach(x, [&](int64_t r, int64_t c) {
    At(average, r, c) = decay * At(average, r, c) + (1 - decay) * At(x, r, c);
  });
}

}  // namespace hippodrome::reference
