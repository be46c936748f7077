#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cuda/attention/attention_problem.h"

namespace hippodrome::cuda::attention_step_test {
namespace {

constexpr DType kBF16 = DType::kBF16;
constexpr DType kF32 = DType::kF32;

void ExpectRow(const AttentionReference& reference, const Values& o, int64_t row, int64_t sequence,
               int64_t token) {
  const std::vector<double> expected = reference.Row(sequence, token);
  for (size_t j = 0; j < expected.size(); ++j) {
    ASSERT_NEAR(o[static_cast<size_t>(row) * expected.size() + j], expected[j],
                reference.tolerance())
        << "sequence " << sequence << " token " << token << " column " << j;
  }
}

class AttentionStepTest : public testing::TestWithParam<AttentionCase> {};

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionStepTest,
                         testing::Values(AttentionCase{kBF16, {1, 1, 0}, 4, 1, 2},
                                         AttentionCase{kBF16, {1, 64, 64}, 64, 2, 66},
                                         AttentionCase{kBF16, {1, 128, 64}, 64, 1, 66},
                                         AttentionCase{kBF16, {1, 16, 0}, 64, 1, 65, 3},
                                         AttentionCase{kBF16, {2, 7, 6}, 5, 2, 12},
                                         AttentionCase{kBF16, {1, 80, 16}, 64, 1, 20},
                                         AttentionCase{kF32, {1, 4, 4}, 64, 1, 66},
                                         AttentionCase{kF32, {1, 64, 0}, 64, 1, 66, 1},
                                         AttentionCase{kF32, {1, 128, 64}, 16, 2, 20},
                                         AttentionCase{kF32, {1, 255, 32}, 64, 1, 9}));

TEST_P(AttentionStepTest, MatchesTheFormula) {
  const AttentionCase& c = GetParam();
  const Values qkv = RandomProjections(c, 1);
  const AttentionReference reference(c, qkv);
  AttentionSession session(c);
  for (int64_t t = 0; t < c.tokens; ++t) {
    const Values o = session.Step(qkv, t);
    for (int64_t i = 0; i < c.sequences; ++i) ExpectRow(reference, o, i, i, t);
  }
}

// Sequences of several parts, on and beside the borders of parts and pages.
TEST(AttentionStepCases, BringsPartsTogether) {
  for (const AttentionCase& c : {AttentionCase{kBF16, {1, 16, 16}, 64, 1, 530},
                                 AttentionCase{kF32, {1, 16, 8}, 48, 1, 530}}) {
    const Values qkv = RandomProjections(c, 2);
    const AttentionReference reference(c, qkv);
    AttentionSession session(c);
    session.Prefill(qkv, 0, c.tokens - 1);
    for (const int32_t position : {0, 255, 256, 287, 288, 511, 512, 529}) {
      ExpectRow(reference, session.Step(qkv, position), 0, 0, position);
    }
  }
}

// On and beside the positions from where a block is before the window.
TEST(AttentionStepCases, AsksForTheNextProductWhereItCombines) {
  constexpr int64_t kBytes = 100'000;
  const AttentionCase c = {kBF16, {2, 16, 16}, 64, 3, 300};
  const Values qkv = RandomProjections(c, 2);
  AttentionSession session(c);
  session.Prefill(qkv, 0, c.tokens - 1);
  const std::shared_ptr<void> weights = AllocateZeroed(session.device(), kBytes);
  session.device().Expect(weights.get(), kBytes);
  session.Step(qkv, {299, 3, -1});
  EXPECT_EQ(cuda_on_cpu::LastPrefetches(),
            (std::vector<cuda_on_cpu::Prefetched>{{weights.get(), kBytes}}));
}

TEST(AttentionStepCases, SeesItsWindowAlone) {
  for (const DType dtype : {kBF16, kF32}) {
    for (const int64_t window : {1, 64, 100, 300}) {
      const AttentionCase c = {
          dtype, {.heads = 1, .head_dim = 16, .rotary_dim = 8, .window = window}, 64, 2, 530};
      const Values qkv = RandomProjections(c, 6);
      const AttentionReference reference(c, qkv);
      AttentionSession session(c);
      session.Prefill(qkv, 0, c.tokens - 1);
      for (const int32_t position : {0, 63, 64, 99, 127, 163, 226, 227, 363, 364, 511, 529}) {
        const Values o = session.Step(qkv, {position, 529 - position});
        ExpectRow(reference, o, 0, 0, position);
        ExpectRow(reference, o, 1, 1, 529 - position);
      }
    }
  }
}

TEST(AttentionStepCases, RowsAreIndependentAndInertOnesZero) {
  for (const DType dtype : {kBF16, kF32}) {
    const AttentionCase c = {dtype, {1, 32, 32}, 16, 4, 40};
    const Values qkv = RandomProjections(c, 3);
    AttentionSession session(c);
    session.Prefill(qkv, 0, c.tokens);
    const std::vector<int32_t> positions = {39, 3, -1, 16};
    const Values all = session.Step(qkv, positions);
    const auto row = [&](const Values& o, size_t i) {
      const auto first = o.begin() + static_cast<int64_t>(i) * c.width();
      return Values(first, first + c.width());
    };
    EXPECT_EQ(row(all, 2), Values(static_cast<size_t>(c.width())));
    for (size_t i : {0u, 1u, 3u}) {
      std::vector<int32_t> alone(4, -1);
      alone[i] = positions[i];
      EXPECT_EQ(row(session.Step(qkv, alone), i), row(all, i)) << "row " << i;
    }
  }
}

TEST(AttentionStepCases, ThreadsMayRunInAnyOrder) {
  for (const DType dtype : {kBF16, kF32}) {
    const AttentionCase c = {dtype, {1, 16, 16}, 64, 1, 270};
    const Values qkv = RandomProjections(c, 5);
    AttentionSession session(c);
    session.Prefill(qkv, 0, c.tokens - 1);
    const Values expected = session.Step(qkv, c.tokens - 1);
    cuda_on_cpu::InEveryOrder([&] { EXPECT_EQ(session.Step(qkv, c.tokens - 1), expected); });
  }
}

TEST(AttentionStepCases, ContinuesASequence) {
  const AttentionCase c = {kBF16, {2, 64, 64}, 64, 2, 131};
  const Values qkv = RandomProjections(c, 4);
  const AttentionReference reference(c, qkv);
  AttentionSession session(c);
  session.Prefill(qkv, 0, 62);
  for (int64_t t = 62; t < 67; ++t) {
    const Values o = session.Step(qkv, t);
    for (int64_t i = 0; i < c.sequences; ++i) ExpectRow(reference, o, i, i, t);
  }
  const Values o = session.Prefill(qkv, 67, 64);
  for (int64_t i = 0; i < c.sequences; ++i) {
    for (int64_t t = 0; t < 64; ++t) ExpectRow(reference, o, i * 64 + t, i, 67 + t);
  }
}

}  // namespace
}  // namespace hippodrome::cuda::attention_step_test
