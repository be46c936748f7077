#include "tests/kernels/training/solve.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/reference/matrix.h"

namespace hippodrome {
namespace {

OwnedTensor NewStrided(TrainingBackend& backend, int64_t rows, int64_t cols, int64_t gap) {
  OwnedTensor tensor = backend.NewTensor(rows + 1, cols + gap);
  tensor.view = tensor.view.Rows(0, rows).Cols(gap, cols);
  return tensor;
}

// Tensors and their views.
class Matrices {
 public:
  Matrices(TrainingBackend& backend, int64_t gap) : backend_(backend), gap_(gap) {}

  Tensor New(int64_t rows, int64_t cols, const Numbers& values) {
    owned_.push_back(NewStrided(backend_, rows, cols, gap_));
    Set(backend_, values, owned_.back());
    return owned_.back();
  }
  std::vector<Tensor> Operands(const TrainingProblem& problem, const Inputs& inputs) {
    std::vector<Tensor> all;
    for (size_t i = 0; i < problem.operands.size(); ++i) {
      const Operand& operand = problem.operands[i];
      all.push_back(New(operand.rows, operand.cols, inputs.operands[i]));
    }
    return all;
  }

 private:
  TrainingBackend& backend_;
  int64_t gap_;
  std::vector<OwnedTensor> owned_;
};

double Largest(const Numbers& values) {
  double largest = 0;
  for (const double x : values) largest = std::max(largest, std::abs(x));
  return largest;
}

// Every number off by `size` of the largest, up or down.
void Disturb(Numbers& values, double size, std::mt19937& random) {
  const double step = size * Largest(values);
  for (double& x : values) x += random() % 2 == 0 ? step : -step;
}

// `inputs` after rounding errors of `size`.
Inputs Disturbed(const TrainingProblem& problem, Inputs inputs, double size, std::mt19937& random) {
  for (size_t i = 0; i < inputs.operands.size(); ++i) {
    if (problem.operands[i].rule != GradientRule::kTaken) Disturb(inputs.operands[i], size, random);
  }
  if (!problem.dy.has_value()) Disturb(inputs.dy, size, random);
  return inputs;
}

// How far f32 arithmetic may take each result of `compute(inputs)`.
template <typename Compute>
Numbers HowFar(const TrainingProblem& problem, const Inputs& inputs, Compute compute) {
  constexpr double kUnit = 0x1p-24;
  constexpr int kDisturbances = 4;
  // Small enough to be linear, large enough to be seen.
  const double size = problem.bf16 ? 0x1p-20 : 0x1p-14;
  const double scale = problem.bf16 ? 1 : std::sqrt(problem.terms) * kUnit / size;
  const std::vector<Numbers> exact = compute(inputs);
  Numbers tolerances(exact.size());
  std::mt19937 random(5);
  for (int k = 0; k < kDisturbances; ++k) {
    const std::vector<Numbers> moved = compute(Disturbed(problem, inputs, size, random));
    for (size_t i = 0; i < exact.size(); ++i) {
      for (size_t j = 0; j < exact[i].size(); ++j) {
        tolerances[i] = std::max(tolerances[i], scale * std::abs(moved[i][j] - exact[i][j]));
      }
    }
  }
  // The sum with what was there, and the rounding of the result.
  for (size_t i = 0; i < exact.size(); ++i) tolerances[i] += 2 * kUnit * (1 + Largest(exact[i]));
  return tolerances;
}

}  // namespace

Inputs InputsOf(const TrainingProblem& problem) {
  Inputs inputs;
  for (const Operand& operand : problem.operands) {
    inputs.operands.emplace_back(operand.values.begin(), operand.values.end());
  }
  const std::vector<float> dy = GridValues(problem.rows * problem.cols, 99);
  inputs.dy.assign(dy.begin(), dy.end());
  if (problem.dy.has_value()) std::ranges::fill(inputs.dy, *problem.dy);
  return inputs;
}

void Set(TrainingBackend& backend, const Numbers& values, Tensor x) {
  if (x.dtype != DType::kF64) {
    return backend.Upload(std::vector<float>(values.begin(), values.end()), x);
  }
  reference::ForEach(x, [&](int64_t r, int64_t c) {
    reference::At(x, r, c) = values[static_cast<size_t>(r * x.cols + c)];
  });
}

Numbers Get(TrainingBackend& backend, Tensor x) {
  if (x.dtype != DType::kF64) {
    const std::vector<float> values = Download(backend, x);
    return Numbers(values.begin(), values.end());
  }
  Numbers values;
  reference::ForEach(x, [&](int64_t r, int64_t c) { values.push_back(reference::At(x, r, c)); });
  return values;
}

Numbers Output(TrainingBackend& backend, const TrainingProblem& problem, const Inputs& inputs) {
  Matrices matrices(backend, 0);
  const std::vector<Tensor> operands = matrices.Operands(problem, inputs);
  const Tensor y = matrices.New(problem.rows, problem.cols, Numbers(inputs.dy.size()));
  problem.forward(backend, operands, y);
  return Get(backend, y);
}

double Objective(TrainingBackend& backend, const TrainingProblem& problem, const Inputs& inputs) {
  const Numbers y = Output(backend, problem, inputs);
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += y[i] * inputs.dy[i];
  return sum;
}

Numbers Before(const Operand& operand) {
  Numbers values;
  for (size_t i = 0; i < operand.values.size(); ++i) {
    values.push_back(0.25 * static_cast<double>(i % 5) - 0.5);
  }
  return values;
}

bool Adds(const Operand& operand, const SolveOptions& options) {
  return operand.rule == GradientRule::kAdded ||
         (operand.rule == GradientRule::kGradient && options.add);
}

std::vector<Numbers> Gradients(TrainingBackend& backend, const TrainingProblem& problem,
                               const Inputs& inputs, const SolveOptions& options) {
  Matrices matrices(backend, options.gap);
  const std::vector<Tensor> operands = matrices.Operands(problem, inputs);
  const Tensor dy = matrices.New(problem.rows, problem.cols, inputs.dy);
  std::vector<Gradient> gradients(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!options.unwanted.empty() && options.unwanted[i]) continue;
    const Operand& operand = problem.operands[i];
    gradients[i] = {matrices.New(operand.rows, operand.cols, Before(operand)), options.add};
  }
  problem.backward(backend, operands, dy, gradients);
  std::vector<Numbers> values;
  for (const Gradient& gradient : gradients) {
    values.push_back(gradient.tensor.data == nullptr ? Numbers() : Get(backend, gradient.tensor));
  }
  return values;
}

Numbers Tolerances(TrainingBackend& reference, const TrainingProblem& problem,
                   const Inputs& inputs) {
  return HowFar(problem, inputs, [&](const Inputs& x) { return Gradients(reference, problem, x); });
}

double OutputTolerance(TrainingBackend& reference, const TrainingProblem& problem,
                       const Inputs& inputs) {
  const auto output = [&](const Inputs& x) {
    return std::vector<Numbers>{Output(reference, problem, x)};
  };
  return HowFar(problem, inputs, output)[0];
}

}  // namespace hippodrome
