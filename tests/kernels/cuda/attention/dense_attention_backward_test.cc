#include "kernels/cuda/attention/dense_attention.h"

#include <gtest/gtest.h>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cuda/attention/attention_problem.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome::cuda::dense_attention_backward_test {
namespace {

// Causal where no key is hidden by a mask.
struct GradientCase {
  AttentionCase attention;
  std::vector<int32_t> mask;
  AttentionDropout dropout = {};

  int64_t rows() const { return attention.sequences * attention.tokens; }
};

struct Outcome {
  Values o, dqkv;

  bool operator==(const Outcome&) const = default;
};

Outcome OnDevice(const GradientCase& gradient, const Values& qkv, const Values& d_o) {
  const AttentionCase& c = gradient.attention;
  Device device;
  const int64_t rows = gradient.rows();
  const DeviceMatrix in(device, {rows, 3 * c.width(), c.dtype, c.gap}, qkv);
  const DeviceMatrix out(device, {rows, c.width(), DType::kF32, c.gap}, d_o);
  const DeviceMatrix o(device, {rows, c.width(), c.dtype, c.gap});
  const DeviceMatrix dqkv(device, {rows, 3 * c.width(), DType::kF32, c.gap}, Values(qkv.size(), 1));
  const OwnedTensor inv_freq = NewMatrix(device, 1, c.shape.rotary_dim / 2, DType::kF32);
  CopyIn(device, InverseFrequencies(c.shape), inv_freq);
  OwnedTensor mask;
  if (!gradient.mask.empty()) {
    mask = NewMatrix(device, c.sequences, c.tokens, DType::kI32);
    CopyIn(device, gradient.mask, mask);
  }
  const AttentionProblem problem = {c.shape, in.view(),   inv_freq,
                                    mask,    c.sequences, gradient.dropout};
  AttentionForward(device, problem, o.view());
  AttentionBackward(device, problem, out.view(), {dqkv.view(), /*add=*/true});
  EXPECT_TRUE(o.SurroundingsAreZero() && dqkv.SurroundingsAreZero());
  return {o.values(), dqkv.values()};
}

Outcome InDouble(const GradientCase& gradient, const Values& qkv, const Values& d_o) {
  const AttentionCase& c = gradient.attention;
  const std::unique_ptr<TrainingBackend> backend = MakeReferenceBackend();
  const auto upload = [&](int64_t rows, int64_t cols, const Values& values) {
    OwnedTensor x = backend->NewTensor(rows, cols);
    backend->Upload(values, x);
    return x;
  };
  const OwnedTensor in = upload(gradient.rows(), 3 * c.width(), qkv);
  const OwnedTensor out = upload(gradient.rows(), c.width(), d_o);
  const OwnedTensor inv_freq = upload(1, c.shape.rotary_dim / 2, InverseFrequencies(c.shape));
  const OwnedTensor o = backend->NewTensor(gradient.rows(), c.width());
  const OwnedTensor dqkv = backend->NewTensor(gradient.rows(), 3 * c.width());
  if (gradient.mask.empty()) {
    backend->CausalAttention(c.shape, in, inv_freq, c.sequences, gradient.dropout, o);
    backend->CausalAttentionBackward(c.shape, in, inv_freq, c.sequences, gradient.dropout, out,
                                     {dqkv});
  } else {
    const OwnedTensor mask = backend->NewIndices(c.sequences, c.tokens);
    backend->UploadIndices(gradient.mask, mask);
    backend->BidirectionalAttention(c.shape, in, mask, o);
    backend->BidirectionalAttentionBackward(c.shape, in, mask, out, {dqkv});
  }
  Outcome outcome = {Values(d_o.size()), Values(qkv.size())};
  backend->Download(o, outcome.o);
  backend->Download(dqkv, outcome.dqkv);
  return outcome;
}

// Scores are off by a few roundings of |q| |k| / sqrt(n) <= sqrt(n), and so, relatively, are the
// probabilities; sums of n products of these are compared on the scale of the largest result.
void ExpectGradients(const GradientCase& gradient) {
  const AttentionCase& c = gradient.attention;
  const Values qkv = RandomProjections(c, 1);
  const Values d_o = RandomValues(gradient.rows() * c.width(), 2);
  const Outcome expected = InDouble(gradient, qkv, d_o);
  const Outcome outcome = OnDevice(gradient, qkv, d_o);
  const auto largest = [](const Values& x) {
    double result = 0;
    for (const float value : x) result = std::max(result, std::abs(double{value}));
    return result;
  };
  const double roundoff = 4 * kUnitRoundoff * std::sqrt(static_cast<double>(c.shape.head_dim));
  const double stored = c.dtype == DType::kBF16 ? 0x1p-8 : 0;
  const double o_tolerance = (roundoff + stored) * largest(expected.o);
  for (size_t i = 0; i < expected.o.size(); ++i) {
    ASSERT_NEAR(outcome.o[i], expected.o[i], o_tolerance) << "o " << i;
  }
  const double tolerance = roundoff * (1 + largest(expected.dqkv));
  for (size_t i = 0; i < expected.dqkv.size(); ++i) {
    ASSERT_NEAR(outcome.dqkv[i], 1 + expected.dqkv[i], tolerance) << "dqkv " << i;
  }
}

AttentionCase MakeCase(DType dtype, AttentionShape shape, int64_t sequences, int64_t tokens,
                       int64_t gap = 0) {
  return {dtype, shape, 64, sequences, tokens, gap};
}

// Every second key of the first sequence, none of the second, all of the others.
std::vector<int32_t> Mask(const AttentionCase& c) {
  std::vector<int32_t> mask;
  for (int64_t b = 0; b < c.sequences; ++b) {
    for (int64_t t = 0; t < c.tokens; ++t) {
      mask.push_back(b == 0 ? static_cast<int32_t>(t % 2) : b == 1 ? 0 : 1);
    }
  }
  return mask;
}

class DenseAttentionBackwardTest : public testing::TestWithParam<AttentionCase> {};

// Tiles have 64 rows, or 32 for heads of more than 64 elements.
INSTANTIATE_TEST_SUITE_P(Shapes, DenseAttentionBackwardTest,
                         testing::Values(MakeCase(DType::kF32, {1, 1, 0}, 1, 1),
                                         MakeCase(DType::kF32, {2, 8, 4}, 2, 9),
                                         MakeCase(DType::kF32, {1, 32, 32}, 1, 64),
                                         MakeCase(DType::kF32, {1, 33, 2}, 1, 65, 3),
                                         MakeCase(DType::kF32, {1, 64, 64}, 3, 70),
                                         MakeCase(DType::kF32, {2, 65, 16}, 1, 33),
                                         MakeCase(DType::kF32, {1, 256, 64}, 1, 40),
                                         MakeCase(DType::kBF16, {2, 20, 8}, 2, 67, 1),
                                         MakeCase(DType::kBF16, {1, 128, 0}, 1, 34)));

TEST_P(DenseAttentionBackwardTest, CausalMatchesTheReference) { ExpectGradients({GetParam(), {}}); }

TEST_P(DenseAttentionBackwardTest, DropoutMatchesTheReference) {
  ExpectGradients({GetParam(), {}, {.p = 0.25, .seed = 0x123456789abcdefu}});
}

TEST_P(DenseAttentionBackwardTest, MaskedMatchesTheReference) {
  AttentionCase c = GetParam();
  c.shape.rotary_dim = 0;
  ExpectGradients({c, Mask(c)});
}

TEST(DenseAttentionBackwardCases, ThreadsMayRunInAnyOrder) {
  const GradientCase c = {MakeCase(DType::kF32, {1, 8, 4}, 1, 70), {}};
  const Values qkv = RandomProjections(c.attention, 1);
  const Values d_o = RandomValues(c.rows() * c.attention.width(), 2);
  const Outcome expected = OnDevice(c, qkv, d_o);
  cuda_on_cpu::InEveryOrder([&] { EXPECT_TRUE(OnDevice(c, qkv, d_o) == expected); });
}

}  // namespace
}  // namespace hippodrome::cuda::dense_attention_backward_test
