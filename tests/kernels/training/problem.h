// Training operations as problems to be solved: random inputs, a forward and its backward. Tests
// check them against differences of the forward, and one backend against another.
#ifndef HIPPODROME_TESTS_KERNELS_TRAINING_PROBLEM_H_
#define HIPPODROME_TESTS_KERNELS_TRAINING_PROBLEM_H_

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/training_backend.h"

namespace hippodrome {

// What a backward does with a gradient.
enum class GradientRule : uint8_t {
  kGradient,  // as Gradient says
  kAdded,     // a parameter's: always added to
  kTaken,     // always replaced: by TakeH3Gradients() and TakeLongConvGradients()
};

// An input that has a gradient. Values are multiples of 2^-12 below 2^10, so that steps of 2^-10
// from them are exact in f32.
struct Operand {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<float> values;
  GradientRule rule = GradientRule::kGradient;
};

using Tensors = std::span<const Tensor>;

struct TrainingProblem {
  std::string name;
  std::vector<Operand> operands;
  int64_t rows = 0;  // of the output y
  int64_t cols = 0;
  // y of the operands, which live on the backend.
  std::function<void(TrainingBackend&, Tensors, Tensor)> forward;
  // The gradients of the operands from dy; may write to it where the contract says so.
  std::function<void(TrainingBackend&, Tensors, Tensor, std::span<const Gradient>)> backward;
  std::optional<float> dy;  // all of dy, where the backward takes none; else it is random
  double terms = 1;         // of the longest sum in the backward
  bool bf16 = false;        // rounds the operands of products to bf16
  bool large = false;       // too large for differences and for slow backends
};

inline void PrintTo(const TrainingProblem& problem, std::ostream* out) { *out << problem.name; }

// `count` multiples of 2^-12, uniform in [low, high].
std::vector<float> GridValues(int64_t count, uint32_t seed, double low = -1, double high = 1);
Operand RandomOperand(std::string name, int64_t rows, int64_t cols, uint32_t seed, double low = -1,
                      double high = 1, GradientRule rule = GradientRule::kGradient);

// The values of a tensor.
std::vector<float> Download(TrainingBackend& backend, Tensor x);
// Indices [rows, values.size() / rows].
OwnedTensor UploadIndices(TrainingBackend& backend, int64_t rows, std::span<const int32_t> values);

// One list for each file of the operations.
std::vector<TrainingProblem> LinearProblems();
std::vector<TrainingProblem> H3Problems();
std::vector<TrainingProblem> LongConvProblems();
std::vector<TrainingProblem> AttentionProblems();
std::vector<TrainingProblem> RowProblems();
std::vector<TrainingProblem> AllTrainingProblems();

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_TRAINING_PROBLEM_H_
