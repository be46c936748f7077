// The types and kernels that products are tested with.
#ifndef HIPPODROME_TESTS_KERNELS_CPU_GEMM_LINEAR_KERNELS_H_
#define HIPPODROME_TESTS_KERNELS_CPU_GEMM_LINEAR_KERNELS_H_

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/cpu/gemm/linear.h"
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/microkernel_amx.h"

namespace hippodrome::cpu {

// Skips kernels that this processor lacks.
class LinearKernelTest : public testing::TestWithParam<std::tuple<DType, BF16Kernel>> {
 protected:
  void SetUp() override {
    if (kernel() == BF16Kernel::kDot && !HaveBF16Dot()) GTEST_SKIP() << "no bf16 dot product";
    if (kernel() == BF16Kernel::kAmx && !HaveAmx()) GTEST_SKIP() << "no matrix registers";
  }
  DType dtype() const { return std::get<0>(GetParam()); }
  BF16Kernel kernel() const { return std::get<1>(GetParam()); }
};

inline auto AllLinearKernels() {
  return testing::Values(
      std::tuple(DType::kF32, BF16Kernel::kBest), std::tuple(DType::kBF16, BF16Kernel::kPlain),
      std::tuple(DType::kBF16, BF16Kernel::kDot), std::tuple(DType::kBF16, BF16Kernel::kAmx));
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_TESTS_KERNELS_CPU_GEMM_LINEAR_KERNELS_H_
