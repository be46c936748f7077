// The contract of Backend::H3Sequence, whatever computes it.
#include "kernels/cuda/h3/h3_prefill.h"

#include <cuda_runtime.h>

#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_prefill_test {
namespace {

constexpr DType kTypes[] = {DType::kBF16, DType::kF32};

// Constants of the error bounds in roundings of float, of the least exact method for the type.
double OutputConstant(DType dtype) { return dtype == DType::kBF16 ? 80 : 2; }
double StateConstant(DType dtype) { return dtype == DType::kBF16 ? 450 : 1.5; }

// The whole, and the same in two parts.
void ExpectSequence(const H3Shape& shape, int64_t tokens) {
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(testing::Message()
                 << "T " << tokens << " d " << shape.d_model << " head " << shape.head_dim << " N "
                 << shape.d_state << " " << Name(dtype));
    H3Layer layer(shape, dtype);
    const Values qkv = layer.RandomTokens(tokens, 3);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    const Values o = layer.Sequence(H3Sequence, qkv, {1});
    layer.ExpectOutput(expected, 0, tokens, o, OutputConstant(dtype));
    layer.ExpectState(expected, 1, StateConstant(dtype));

    const int64_t cut = tokens / 3;
    if (cut == 0) continue;
    layer.Sequence(H3Sequence, RowsOf(qkv, 3 * layer.d(), 0, cut), {0});
    const Values rest = layer.Sequence(H3Sequence, RowsOf(qkv, 3 * layer.d(), cut, tokens), {0});
    layer.ExpectOutput(expected, cut, tokens, rest, OutputConstant(dtype));
    layer.ExpectState(expected, 0, StateConstant(dtype));
  }
}

TEST(H3SequenceTest, EveryLength) {
  for (const int64_t tokens : {1, 2, 16, 63, 65, 300, 600}) ExpectSequence({.d_model = 4}, tokens);
}

TEST(H3SequenceTest, EveryShape) {
  for (const int64_t d_state : {2, 6, 128}) ExpectSequence({.d_model = 3, .d_state = d_state}, 80);
  for (const H3OutputOrder order : {H3OutputOrder::kHeadD2, H3OutputOrder::kD2Head}) {
    for (auto [d, head_dim] : {std::pair{4, 2}, {16, 8}}) {
      ExpectSequence({.d_model = d, .head_dim = head_dim, .d_state = 8, .output_order = order}, 50);
    }
  }
}

// Which method computes a call, in one launch once it has made its tables.
std::string MethodOf(const H3Shape& shape, DType dtype, int64_t start) {
  H3Layer layer(shape, dtype);
  const Values qkv = layer.RandomTokens(100, 3);
  for (int i = 0; i < 2; ++i) {
    layer.set_position(1, start);
    cuda_on_cpu::ResetLaunchCounts();
    layer.Sequence(H3Sequence, qkv, {1});
  }
  EXPECT_EQ(cuda_on_cpu::LaunchCount(), 1);
  for (const char* method : {"h3_scan", "h3_fft", "h3_recurrence"}) {
    if (cuda_on_cpu::LaunchCount(method) == 1) return method;
  }
  return "";
}

TEST(H3SequenceTest, ChoosesTheFastestMethod) {
  EXPECT_EQ(MethodOf({.d_model = 16}, DType::kBF16, 0), "h3_scan");
  EXPECT_EQ(MethodOf({.d_model = 16}, DType::kBF16, 100), "h3_scan");
  EXPECT_EQ(MethodOf({.d_model = 16}, DType::kF32, 0), "h3_fft");
  EXPECT_EQ(MethodOf({.d_model = 16}, DType::kF32, 100), "h3_scan");
  EXPECT_EQ(MethodOf({.d_model = 16, .d_state = 128}, DType::kBF16, 100), "h3_recurrence");
  EXPECT_EQ(MethodOf({.d_model = 16, .head_dim = 2}, DType::kBF16, 100), "h3_recurrence");
}

}  // namespace
}  // namespace hippodrome::cuda::h3_prefill_test
