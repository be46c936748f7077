// Solves training problems on a backend.
#ifndef HIPPODROME_TESTS_KERNELS_TRAINING_SOLVE_H_
#define HIPPODROME_TESTS_KERNELS_TRAINING_SOLVE_H_

#include <vector>

#include "tests/kernels/training/problem.h"

namespace hippodrome {

using Numbers = std::vector<double>;

// The values of the operands, and of dy.
struct Inputs {
  std::vector<Numbers> operands;
  Numbers dy;
};

// Those of the problem, with a reproducible dy.
Inputs InputsOf(const TrainingProblem& problem);

// Numbers to and from a tensor: f64 ones as they are, others by way of f32.
void Set(TrainingBackend& backend, const Numbers& values, Tensor x);
Numbers Get(TrainingBackend& backend, Tensor x);

// y.
Numbers Output(TrainingBackend& backend, const TrainingProblem& problem, const Inputs& inputs);
// sum y dy.
double Objective(TrainingBackend& backend, const TrainingProblem& problem, const Inputs& inputs);

struct SolveOptions {
  int64_t gap = 0;             // of the rows of every tensor
  bool add = false;            // to what Before() says
  std::vector<bool> unwanted;  // gradients without data; empty: none
};

// What is in the gradient of an operand before the backward runs.
Numbers Before(const Operand& operand);
// Whether the backward adds to it.
bool Adds(const Operand& operand, const SolveOptions& options);

// What is in the gradients of the operands afterwards; no numbers where unwanted.
std::vector<Numbers> Gradients(TrainingBackend& backend, const TrainingProblem& problem,
                               const Inputs& inputs, const SolveOptions& options = {});

// Of each gradient, how far f32 arithmetic may take it from what the reference computes. The error
// model: sums of n terms err like operands that are each off by sqrt(n) roundings on the scale of
// their tensor. How far that moves a gradient, the reference itself tells, from a few random such
// disturbances. Parameters of SSMs are not disturbed: they are taken in double. Where operands are
// rounded to bf16, some come to lie on the other side of a border: that is a jump, of the same
// height however small the disturbance.
Numbers Tolerances(TrainingBackend& reference, const TrainingProblem& problem,
                   const Inputs& inputs);
// The same of y.
double OutputTolerance(TrainingBackend& reference, const TrainingProblem& problem,
                       const Inputs& inputs);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_TRAINING_SOLVE_H_
