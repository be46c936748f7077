// The large problems of training, which the contract of gradients leaves out on slow backends.
#ifndef HIPPODROME_TESTS_KERNELS_CUDA_LARGE_PROBLEMS_H_
#define HIPPODROME_TESTS_KERNELS_CUDA_LARGE_PROBLEMS_H_

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/cuda/cuda_backend.h"
#include "tests/kernels/training/solve.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome {

inline std::vector<TrainingProblem> LargeOf(std::vector<TrainingProblem> problems) {
  std::erase_if(problems, [](const TrainingProblem& problem) { return !problem.large; });
  return problems;
}

// The CUDA backend gives the gradients of the reference, in every order of threads the same bits.
inline void ExpectGradientsInEveryThreadOrder(const TrainingProblem& problem) {
  const auto reference = MakeReferenceBackend();
  const Inputs inputs = InputsOf(problem);
  const std::vector<Numbers> expected = Gradients(*reference, problem, inputs);
  const Numbers tolerances = Tolerances(*reference, problem, inputs);
  CudaBackend backend;
  const std::vector<Numbers> gradients = Gradients(backend, problem, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t j = 0; j < expected[i].size(); ++j) {
      ASSERT_NEAR(gradients[i][j], expected[i][j], tolerances[i])
          << "d " << problem.operands[i].name << "[" << j << "]";
    }
  }
  cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kShuffled, 1);
  EXPECT_EQ(Gradients(backend, problem, inputs), gradients);
  cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kForward);
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_CUDA_LARGE_PROBLEMS_H_
