// Every backward of the reference against differences of its forward, for every input.
#include "tests/reference/training/training_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/training/solve.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome::training_reference_test {
namespace {

// d f / d x by differences of fourth order: the error is h^4/30 of the fifth derivative, 1e-12 of
// it here, and 1e-13 of f by rounding.
template <typename F>
double Derivative(F f, double& x) {
  constexpr double kStep = 0x1p-10;
  const double at = x;
  const auto value = [&](double steps) {
    x = at + steps * kStep;
    return f();
  };
  const double derivative = (8 * (value(1) - value(-1)) - (value(2) - value(-2))) / (12 * kStep);
  x = at;
  return derivative;
}

class TrainingReferenceTest : public testing::TestWithParam<TrainingProblem> {
 protected:
  const TrainingProblem& problem() const { return GetParam(); }
  std::unique_ptr<TrainingBackend> backend_ = MakeReferenceBackend();
};

std::vector<TrainingProblem> SmallProblems() {
  std::vector<TrainingProblem> problems = AllTrainingProblems();
  std::erase_if(problems, [](const TrainingProblem& p) { return p.large; });
  return problems;
}

INSTANTIATE_TEST_SUITE_P(Problems, TrainingReferenceTest, testing::ValuesIn(SmallProblems()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TrainingReferenceTest, BackwardIsTheDerivativeOfTheForward) {
  Inputs inputs = InputsOf(problem());
  const std::vector<Numbers> gradients = Gradients(*backend_, problem(), inputs);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Operand& operand = problem().operands[i];
    const Numbers before = Before(operand);
    for (size_t j = 0; j < gradients[i].size(); ++j) {
      const double expected = Derivative([&] { return Objective(*backend_, problem(), inputs); },
                                         inputs.operands[i][j]);
      const double value = gradients[i][j] - (Adds(operand, {}) ? before[j] : 0);
      ASSERT_NEAR(value, expected, 1e-5 * std::abs(expected) + 1e-8)
          << "d " << operand.name << "[" << j << "]";
    }
  }
}

TEST_P(TrainingReferenceTest, AddsWhereAskedTo) {
  const Inputs inputs = InputsOf(problem());
  const std::vector<Numbers> replaced = Gradients(*backend_, problem(), inputs);
  const std::vector<Numbers> added = Gradients(*backend_, problem(), inputs, {.add = true});
  for (size_t i = 0; i < replaced.size(); ++i) {
    const Operand& operand = problem().operands[i];
    const Numbers before = Before(operand);
    for (size_t j = 0; j < before.size(); ++j) {
      const bool grows = operand.rule == GradientRule::kGradient;
      ASSERT_NEAR(added[i][j] - replaced[i][j], grows ? before[j] : 0, 1e-12) << operand.name;
    }
  }
}

}  // namespace
}  // namespace hippodrome::training_reference_test
