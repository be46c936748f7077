#include "tests/kernels/training/problem.h"

#include <cmath>
#include <random>
#include <utility>

namespace hippodrome {

std::vector<float> GridValues(int64_t count, uint32_t seed, double low, double high) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(std::round(uniform(generator) * 0x1p12) * 0x1p-12));
  }
  return values;
}

Operand RandomOperand(std::string name, int64_t rows, int64_t cols, uint32_t seed, double low,
                      double high, GradientRule rule) {
  return {std::move(name), rows, cols, GridValues(rows * cols, seed, low, high), rule};
}

std::vector<float> Download(TrainingBackend& backend, Tensor x) {
  std::vector<float> values(static_cast<size_t>(x.rows * x.cols));
  backend.Download(x, values);
  return values;
}

OwnedTensor UploadIndices(TrainingBackend& backend, int64_t rows, std::span<const int32_t> values) {
  OwnedTensor indices = backend.NewIndices(rows, static_cast<int64_t>(values.size()) / rows);
  backend.UploadIndices(values, indices);
  return indices;
}

std::vector<TrainingProblem> AllTrainingProblems() {
  std::vector<TrainingProblem> all;
  for (auto& list :
       {LinearProblems(), H3Problems(), LongConvProblems(), AttentionProblems(), RowProblems()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace hippodrome
