// The contract of gradients: every backward of the backend against that of the reference.
#include "kernels/training_backend.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/kernels/training/solve.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/test_backend.h"

namespace hippodrome::training_backend_test {
namespace {

// What the reference says.
struct Answer {
  std::vector<Numbers> gradients;
  Numbers tolerances;
};

// Once for each problem: the reference is slow.
const Answer& AnswerTo(const TrainingProblem& problem) {
  static std::map<std::string, Answer> answers;
  const auto [place, is_new] = answers.try_emplace(problem.name);
  if (is_new) {
    const auto reference = MakeReferenceBackend();
    const Inputs inputs = InputsOf(problem);
    place->second = {Gradients(*reference, problem, inputs),
                     Tolerances(*reference, problem, inputs)};
  }
  return place->second;
}

class TrainingBackendTest : public testing::TestWithParam<TrainingProblem> {
 protected:
  void SetUp() override {
    if (problem().large && TestBackendIsSlow()) GTEST_SKIP() << "the backend is slow";
    choice_ = MakeTestBackend();
    backend_ = dynamic_cast<TrainingBackend*>(choice_.backend.get());
    if (backend_ == nullptr) GTEST_SKIP() << "no training here. " << choice_.obstacle;
  }
  const TrainingProblem& problem() const { return GetParam(); }

  void Expect(const SolveOptions& options) {
    const Answer& answer = AnswerTo(problem());
    const std::vector<Numbers> gradients = Gradients(*backend_, problem(), inputs_, options);
    for (size_t i = 0; i < gradients.size(); ++i) {
      const Operand& operand = problem().operands[i];
      const Numbers before = Before(operand);
      const bool more = Adds(operand, options) && !Adds(operand, {});
      for (size_t j = 0; j < gradients[i].size(); ++j) {
        ASSERT_NEAR(gradients[i][j], answer.gradients[i][j] + (more ? before[j] : 0),
                    answer.tolerances[i])
            << "d " << operand.name << "[" << j << "]";
      }
    }
  }

  Inputs inputs_ = InputsOf(GetParam());
  ChosenBackend choice_;
  TrainingBackend* backend_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Problems, TrainingBackendTest, testing::ValuesIn(AllTrainingProblems()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TrainingBackendTest, ReplacesGradients) { Expect({}); }

TEST_P(TrainingBackendTest, AddsToGradients) { Expect({.add = true}); }

TEST_P(TrainingBackendTest, TakesStridedRows) { Expect({.gap = 3}); }

TEST_P(TrainingBackendTest, LeavesOutWhatIsNotWanted) {
  for (size_t i = 0; i < problem().operands.size(); ++i) {
    SolveOptions options;
    for (size_t j = 0; j < problem().operands.size(); ++j) options.unwanted.push_back(j != i);
    Expect(options);
  }
}

TEST_P(TrainingBackendTest, RepeatsBitForBit) {
  EXPECT_EQ(Gradients(*backend_, problem(), inputs_), Gradients(*backend_, problem(), inputs_));
}

}  // namespace
}  // namespace hippodrome::training_backend_test
