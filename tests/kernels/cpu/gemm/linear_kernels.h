// The types and kernels that products are tested with.
#ifndef HIPPODROME_TESTS_KERNELS_CPU_GEMM_LINEAR_KERNELS_H_
#define HIPPODROME_TESTS_KERNELS_CPU_GEMM_LINEAR_KERNELS_H_

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/cpu/gemm/linear.h"
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/microkernel_amx.h"
#include "kernels/quantized_group.h"

namespace hippodrome::cpu {

// Skips kernels that this processor lacks.
class LinearKernelTest : public testing::TestWithParam<std::tuple<DType, DotKernel>> {
 protected:
  void SetUp() override {
    const bool have_dot = IsQuantized(dtype()) ? HaveInt8Dot() : HaveBF16Dot();
    if (kernel() == DotKernel::kDot && !have_dot) GTEST_SKIP() << "no dot product";
    const bool have_amx = IsQuantized(dtype()) ? HaveInt8Amx() : HaveAmx();
    if (kernel() == DotKernel::kAmx && !have_amx) GTEST_SKIP() << "no matrix registers";
  }
  DType dtype() const { return std::get<0>(GetParam()); }
  DotKernel kernel() const { return std::get<1>(GetParam()); }
};

// Of weights that are only served.
inline auto QuantizedKernels() {
  return testing::Values(
      std::tuple(DType::kI8, DotKernel::kPlain), std::tuple(DType::kI8, DotKernel::kDot),
      std::tuple(DType::kI8, DotKernel::kAmx), std::tuple(DType::kI4, DotKernel::kPlain),
      std::tuple(DType::kI4, DotKernel::kDot));
}

// Of weights that are trained too.
inline auto AllLinearKernels() {
  return testing::Values(
      std::tuple(DType::kF32, DotKernel::kBest), std::tuple(DType::kBF16, DotKernel::kPlain),
      std::tuple(DType::kBF16, DotKernel::kDot), std::tuple(DType::kBF16, DotKernel::kAmx));
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_TESTS_KERNELS_CPU_GEMM_LINEAR_KERNELS_H_
