// A matrix in the CPU backend and its twin in the reference, for tests of training operations.
#ifndef HIPPODROME_TESTS_KERNELS_CPU_TWIN_MATRIX_H_
#define HIPPODROME_TESTS_KERNELS_CPU_TWIN_MATRIX_H_

#include <cmath>
#include <memory>

#include "kernels/training_backend.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/reference/matrix.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome {

inline TrainingBackend& Reference() {
  static const std::unique_ptr<TrainingBackend> backend = MakeReferenceBackend();
  return *backend;
}

// Equal values in f32, whose rows are `gap` elements apart, and in f64.
class TwinMatrix {
 public:
  TwinMatrix(int64_t rows, int64_t cols, int64_t gap, const std::vector<float>& values)
      : actual_(rows, cols, gap, values), expected_(Reference().NewTensor(rows, cols)) {
    Reference().Upload(values, expected_);
  }
  // Random values in [-1, 1).
  TwinMatrix(int64_t rows, int64_t cols, int64_t gap, uint32_t seed)
      : TwinMatrix(rows, cols, gap, RandomValues(rows * cols, seed)) {}

  Tensor actual() const { return actual_.view(); }
  Tensor expected() const { return expected_; }
  std::vector<float> values() const { return actual_.values(); }

  // The largest magnitude of the expected values in columns [begin, begin + count).
  double Magnitude(int64_t begin, int64_t count) const {
    double largest = 0;
    ForEach(begin, count, [&](double, double x) { largest = std::max(largest, std::abs(x)); });
    return largest;
  }
  double Magnitude() const { return Magnitude(0, expected().cols); }
  // The largest |actual - expected|; infinite if one is not a number.
  double Error(int64_t begin, int64_t count) const {
    double largest = 0;
    ForEach(begin, count, [&](double y, double x) {
      const double error = std::abs(y - x);
      largest = std::isnan(error) ? HUGE_VAL : std::max(largest, error);
    });
    return largest;
  }
  double Error() const { return Error(0, expected().cols); }

 private:
  template <typename Body>
  void ForEach(int64_t begin, int64_t count, const Body& body) const {
    for (int64_t r = 0; r < expected().rows; ++r) {
      for (int64_t c = begin; c < begin + count; ++c) {
        body(cpu::F32Row(actual(), r)[c], reference::At(expected(), r, c));
      }
    }
  }

  StridedMatrix actual_;
  OwnedTensor expected_;
};

// d (sum_ij cotangent_ij y_ij) / d x_rc by central differences of `forward`, which computes y from
// x in the reference.
template <typename Forward>
double CentralDifference(const Forward& forward, Tensor x, Tensor y, Tensor cotangent, int64_t r,
                         int64_t c) {
  constexpr double kStep = 1e-5;
  const double value = reference::At(x, r, c);
  double difference = 0;
  for (const double sign : {-1.0, 1.0}) {
    reference::At(x, r, c) = value + sign * kStep;
    forward();
    for (int64_t i = 0; i < y.rows; ++i) {
      for (int64_t j = 0; j < y.cols; ++j) {
        difference += sign * reference::At(cotangent, i, j) * reference::At(y, i, j);
      }
    }
  }
  reference::At(x, r, c) = value;
  return difference / (2 * kStep);
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_CPU_TWIN_MATRIX_H_
