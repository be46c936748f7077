#include "engine/state/saved_state.h"

#include <gtest/gtest.h>

#include "kernels/cpu_instruction_set.h"
#include "kernels/make_backend.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome::saved_state_test {
namespace {

TEST(ArithmeticTest, NamesWhatDecidesAboutLastBits) {
  const auto cpu = MakeCpuBackend({.threads = 1});
  EXPECT_EQ(Arithmetic(*cpu, DType::kBF16), std::string("cpu ") + CpuInstructionSet() + " bf16");
  EXPECT_EQ(Arithmetic(*cpu, DType::kF32), std::string("cpu ") + CpuInstructionSet() + " f32");
  const auto reference = MakeReferenceBackend();
  EXPECT_EQ(Arithmetic(*reference, DType::kF32), "reference f32");
}

}  // namespace
}  // namespace hippodrome::saved_state_test
