// Matrices of weights, and one row of their product.
#ifndef HIPPODROME_TESTS_REFERENCE_LINEAR_H_
#define HIPPODROME_TESTS_REFERENCE_LINEAR_H_

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/quantized_group.h"
#include "tests/reference/matrix.h"

namespace hippodrome::reference {

class LinearMatrix final : public LinearWeights {
 public:
  LinearMatrix(Matrix w, DType dtype) : w(std::move(w)), dtype(dtype) {}

  int64_t out() const override { return w.rows; }
  int64_t in() const override { return w.cols; }
  int64_t bytes() const override { return static_cast<int64_t>(w.values.size() * sizeof(double)); }

  Matrix w;  // [out, in], rounded to dtype; kI8, kI4: s_w q_w
  DType dtype;
};

// An operand of a product with weights of type `dtype`, kF32 or kBF16.
inline double RoundTo(double x, DType dtype) {
  return dtype == DType::kBF16 ? ToFloat(ToBF16(static_cast<float>(x))) : x;
}

inline void RoundActivations(std::span<double> group, DType /*weights*/) {
  float largest = 0;
  for (double value : group) {
    const float magnitude = std::abs(static_cast<float>(value));
    if (!(magnitude <= largest)) largest = magnitude;
    if (std::isnan(largest)) break;
  }
  const GroupScale scale = ActivationScale(largest);
  for (double& value : group) {
    value = double{scale.scale} * ToInt8(static_cast<float>(value), scale);
  }
}

inline void RoundWeights(std::span<double> group, DType weights) {
  const std::vector<float> values(group.begin(), group.end());
  std::vector<int8_t> integers(values.size());
  const double scale = ToFloat(QuantizeGroup(weights, values, integers.data()));
  for (size_t k = 0; k < group.size(); ++k) group[k] = scale * integers[k];
}

// Calls work(group, weights), such as RoundActivations or RoundWeights, for the groups of a row of
// products with quantised weights.
template <typename Value, typename Work>
void ForEachGroup(std::span<Value> row, DType weights, const Work& work) {
  const auto size = static_cast<size_t>(QuantizedGroup(weights));
  for (size_t begin = 0; begin < row.size(); begin += size) {
    work(row.subspan(begin, std::min(size, row.size() - begin)), weights);
  }
}

// Row `row` of x as products with quantised weights take it.
inline std::vector<double> RoundedRow(Tensor x, int64_t row, DType weights) {
  std::vector<double> values(static_cast<size_t>(x.cols));
  for (int64_t k = 0; k < x.cols; ++k) values[static_cast<size_t>(k)] = At(x, row, k);
  ForEachGroup(std::span(values), weights, RoundActivations);
  return values;
}

// z = x W^T + bias at one place.  x: [rows, in]; bias: [1, out] or empty.
inline double LinearAt(Tensor x, const LinearMatrix& w, Tensor bias, int64_t row, int64_t column) {
  double z = 0;
  if (IsQuantized(w.dtype)) {
    const std::vector<double> operand = RoundedRow(x, row, w.dtype);
    for (int64_t k = 0; k < x.cols; ++k) z += operand[static_cast<size_t>(k)] * w.w(column, k);
  } else {
    for (int64_t k = 0; k < x.cols; ++k) z += RoundTo(At(x, row, k), w.dtype) * w.w(column, k);
  }
  return bias.data == nullptr ? z : z + At(bias, 0, column);
}

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_LINEAR_H_
