#include "tests/kernels/cuda/large_problems.h"

namespace hippodrome::training_rows_ops_test {
namespace {

class TrainingRowsOpsTest : public testing::TestWithParam<TrainingProblem> {};

INSTANTIATE_TEST_SUITE_P(Problems, TrainingRowsOpsTest, testing::ValuesIn(LargeOf(RowProblems())),
                         [](const auto& info) { return info.param.name; });

TEST_P(TrainingRowsOpsTest, GivesTheReferencesGradients) {
  ExpectGradientsInEveryThreadOrder(GetParam());
}

}  // namespace
}  // namespace hippodrome::training_rows_ops_test
