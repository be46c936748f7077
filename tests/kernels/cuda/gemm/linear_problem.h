// Products of random matrices on a device, for tests.
#ifndef HIPPODROME_TESTS_KERNELS_CUDA_GEMM_LINEAR_PROBLEM_H_
#define HIPPODROME_TESTS_KERNELS_CUDA_GEMM_LINEAR_PROBLEM_H_

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/gemm/linear.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda {

using Values = std::vector<float>;

// The types of the three matrices.
struct Types {
  DType x, w, y;
};

inline std::string PrintToString(const Types& types) {
  return std::string(Name(types.x)) + Name(types.w) + Name(types.y);
}

struct Problem {
  int64_t rows, in, out;
  Values x, w;  // [rows, in], [out, in]
};

inline Problem MakeProblem(int64_t rows, int64_t in, int64_t out) {
  return {rows, in, out, RandomValues(rows * in, 1), RandomValues(out * in, 2)};
}

class LinearProblemTest : public testing::TestWithParam<Types> {
 protected:
  std::unique_ptr<PackedWeights> Pack(const Problem& p) {
    const HostMatrix host = {p.w.data(), DType::kF32, p.out, p.in};
    return PackLinear(device_, std::span(&host, 1), GetParam().w);
  }

  Values Multiply(const Problem& p, const PackedWeights& w, int64_t gap = 0) {
    const DeviceMatrix x(device_, {p.rows, p.in, GetParam().x, gap}, p.x);
    const DeviceMatrix y(device_, {p.rows, p.out, GetParam().y, gap});
    Linear(device_, nullptr, {.x = x.view(), .w = w, .epilogue = {}, .y = y.view()});
    EXPECT_TRUE(y.SurroundingsAreZero());
    return y.values();
  }
  Values Multiply(const Problem& p, int64_t gap = 0) { return Multiply(p, *Pack(p), gap); }

  Device device_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_TESTS_KERNELS_CUDA_GEMM_LINEAR_PROBLEM_H_
