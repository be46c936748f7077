#include <gtest/gtest.h>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cuda/attention/attention_problem.h"

namespace hippodrome::cuda::attention_prefill_test {
namespace {

// Rows [first, first + count) of one sequence of `o` against the formula for tokens from `token`.
void ExpectRows(const AttentionReference& reference, const Values& o, int64_t first, int64_t count,
                int64_t sequence, int64_t token) {
  for (int64_t t = 0; t < count; ++t) {
    const std::vector<double> expected = reference.Row(sequence, token + t);
    const float* row = o.data() + (first + t) * static_cast<int64_t>(expected.size());
    for (size_t j = 0; j < expected.size(); ++j) {
      ASSERT_NEAR(row[j], expected[j], reference.tolerance())
          << "sequence " << sequence << " token " << token + t << " column " << j;
    }
  }
}

struct Case {
  AttentionCase problem;
  int64_t start;  // tokens of a call before
};

class AttentionSequenceTest : public testing::TestWithParam<Case> {};

TEST_P(AttentionSequenceTest, MatchesTheFormula) {
  const auto& [c, start] = GetParam();
  const Values qkv = RandomProjections(c, 1);
  const AttentionReference reference(c, qkv);
  AttentionSession session(c);
  if (start > 0) session.Prefill(qkv, 0, start);
  const int64_t count = c.tokens - start;
  const Values o = session.Prefill(qkv, start, count);
  for (int64_t sequence = 0; sequence < c.sequences; ++sequence) {
    ExpectRows(reference, o, sequence * count, count, sequence, start);
  }
}

constexpr DType kBF16 = DType::kBF16;
constexpr DType kF32 = DType::kF32;

// Tiles: every border of pages and of blocks of queries, with and without rotation.
INSTANTIATE_TEST_SUITE_P(Tiles, AttentionSequenceTest,
                         testing::Values(Case{{kBF16, {1, 64, 0}, 64, 1, 1}, 0},       //
                                         Case{{kBF16, {2, 64, 16}, 64, 2, 5}, 0},      //
                                         Case{{kBF16, {1, 64, 64}, 64, 1, 63}, 0},     //
                                         Case{{kBF16, {1, 64, 0}, 64, 1, 64}, 0},      //
                                         Case{{kBF16, {2, 64, 32}, 64, 1, 65, 8}, 0},  //
                                         Case{{kBF16, {1, 64, 0}, 64, 2, 130}, 0},     //
                                         Case{{kBF16, {1, 128, 64}, 64, 1, 130}, 0},   //
                                         Case{{kBF16, {2, 128, 128}, 64, 1, 68}, 3},   //
                                         Case{{kBF16, {1, 128, 0}, 64, 1, 65}, 64},    //
                                         Case{{kBF16, {1, 64, 64}, 64, 2, 230}, 100},  //
                                         Case{{kBF16, {1, 16, 16}, 64, 3, 130}, 64},   //
                                         Case{{kBF16, {3, 32, 0}, 64, 1, 200}, 3},     //
                                         Case{{kBF16, {1, 80, 64}, 64, 1, 70}, 0},     //
                                         Case{{kBF16, {1, 96, 32}, 64, 1, 67}, 64}));

// Other shapes, rows that are not aligned, and f32.
INSTANTIATE_TEST_SUITE_P(Rows, AttentionSequenceTest,
                         testing::Values(Case{{kBF16, {1, 1, 0}, 4, 1, 1}, 0},         //
                                         Case{{kBF16, {2, 7, 6}, 64, 2, 20}, 3},       //
                                         Case{{kBF16, {1, 64, 64}, 16, 1, 40}, 5},     //
                                         Case{{kBF16, {1, 64, 64}, 64, 1, 20, 3}, 0},  //
                                         Case{{kBF16, {1, 64, 4}, 64, 1, 20}, 0},      //
                                         Case{{kBF16, {1, 256, 32}, 64, 1, 9}, 0},     //
                                         Case{{kF32, {2, 4, 4}, 64, 2, 70}, 64},       //
                                         Case{{kF32, {3, 7, 2}, 5, 1, 33, 1}, 0},      //
                                         Case{{kF32, {1, 16, 0}, 64, 1, 130}, 100},    //
                                         Case{{kF32, {2, 64, 16}, 64, 2, 65}, 63},     //
                                         Case{{kF32, {1, 128, 128}, 64, 1, 66}, 3},    //
                                         Case{{kF32, {1, 100, 10}, 7, 1, 20, 2}, 0},   //
                                         Case{{kF32, {1, 255, 0}, 64, 1, 10}, 0}));

// A window that begins between the queries of a tile, of a warp and of a block, or never.
constexpr AttentionShape Windowed(int64_t head_dim, int64_t rotary_dim, int64_t window) {
  return {.heads = 1, .head_dim = head_dim, .rotary_dim = rotary_dim, .window = window};
}
INSTANTIATE_TEST_SUITE_P(Windows, AttentionSequenceTest,
                         testing::Values(Case{{kBF16, Windowed(64, 16, 64), 64, 1, 200}, 0},
                                         Case{{kBF16, Windowed(64, 0, 100), 64, 2, 300}, 0},
                                         Case{{kBF16, Windowed(128, 0, 64), 64, 1, 260}, 192},
                                         Case{{kBF16, Windowed(32, 0, 65), 64, 1, 330}, 129},
                                         Case{{kBF16, Windowed(16, 0, 127), 64, 1, 290}, 255},
                                         Case{{kBF16, Windowed(16, 0, 1), 64, 1, 150}, 63},
                                         Case{{kBF16, Windowed(16, 0, 1000), 64, 1, 150}, 0},
                                         Case{{kBF16, Windowed(7, 6, 70), 64, 1, 220}, 140},
                                         Case{{kF32, Windowed(16, 8, 64), 64, 2, 210}, 130},
                                         Case{{kF32, Windowed(16, 0, 90), 64, 1, 200}, 0}));

TEST(AttentionSequenceCases, AWindowThatSeesAllChangesNoBit) {
  for (const DType dtype : {kBF16, kF32}) {
    AttentionCase c = {dtype, Windowed(16, 16, 0), 64, 1, 200};
    const Values qkv = RandomProjections(c, 7);
    const Values all = AttentionSession(c).Prefill(qkv, 0, c.tokens);
    c.shape.window = c.tokens;
    EXPECT_EQ(AttentionSession(c).Prefill(qkv, 0, c.tokens), all);
  }
}

TEST(AttentionSequenceCases, ChunksGiveTheSameBits) {
  const AttentionCase c = {kBF16, {1, 64, 32}, 64, 1, 150};
  const Values qkv = RandomProjections(c, 2);
  const Values whole = AttentionSession(c).Prefill(qkv, 0, c.tokens);
  for (const int64_t chunk : {33, 64, 129}) {
    AttentionSession session(c);
    Values o;
    for (int64_t t = 0; t < c.tokens; t += chunk) {
      const Values part = session.Prefill(qkv, t, std::min(chunk, c.tokens - t));
      o.insert(o.end(), part.begin(), part.end());
    }
    EXPECT_EQ(o, whole) << "chunks of " << chunk;
  }
}

// In tiles and in rows.
TEST(AttentionSequenceCases, RaggedPartsEqualEachAlone) {
  for (const auto& [dtype, head_dim] : {std::pair{kBF16, 64}, {kBF16, 7}, {kF32, 64}}) {
    SCOPED_TRACE(testing::Message() << Name(dtype) << " " << head_dim);
    const AttentionCase c = {dtype, {2, head_dim, head_dim / 2 * 2}, 64, 5, 200};
    const Values qkv = RandomProjections(c, 6);
    const AttentionReference reference(c, qkv);
    const std::vector<SequencePart> before = {
        {.tokens = 64}, {.tokens = 1}, {.tokens = 130}, {.tokens = 3}, {.tokens = 63}};
    const std::vector<SequencePart> parts = {{.tokens = 1, .start = 64},
                                             {.tokens = 199, .start = 1},
                                             {.tokens = 70, .start = 130},
                                             {.tokens = 66, .start = 3},
                                             {.tokens = 2, .start = 63}};
    AttentionSession session(c);
    session.Parts(qkv, before);
    session.Disable(3);
    const Values o = session.Parts(qkv, parts);
    int64_t row = 0;
    for (int64_t i = 0; i < c.sequences; ++i) {
      const SequencePart& part = parts[static_cast<size_t>(i)];
      if (i != 3) ExpectRows(reference, o, row, part.tokens, i, part.start);
      row += part.tokens;
    }
    // The first sequence alone has the same bits.
    AttentionCase one = c;
    one.sequences = 1;
    AttentionSession single(one);
    single.Parts(qkv, {before[0]});
    EXPECT_EQ(single.Parts(qkv, {parts[0]}), Values(o.begin(), o.begin() + c.width()));
  }
}

TEST(AttentionSequenceCases, InertSequencesChangeNothing) {
  for (const DType dtype : {kBF16, kF32}) {
    const AttentionCase c = {dtype, {2, 64, 64}, 64, 3, 70};
    const Values qkv = RandomProjections(c, 3);
    const Values all = AttentionSession(c).Prefill(qkv, 0, c.tokens);
    AttentionSession session(c);
    session.Disable(1);
    const Values some = session.Prefill(qkv, 0, c.tokens);
    const auto part = [&](const Values& o, int64_t sequence) {
      const auto first = o.begin() + sequence * c.tokens * c.width();
      return Values(first, first + c.tokens * c.width());
    };
    EXPECT_EQ(part(some, 0), part(all, 0));
    EXPECT_EQ(part(some, 2), part(all, 2));
  }
}

TEST(AttentionSequenceCases, ThreadsMayRunInAnyOrder) {
  for (const DType dtype : {kBF16, kF32}) {
    const AttentionCase c = {dtype, {1, 64, 64}, 64, 1, 140};
    const Values qkv = RandomProjections(c, 5);
    const Values expected = AttentionSession(c).Prefill(qkv, 0, c.tokens);
    cuda_on_cpu::InEveryOrder(
        [&] { EXPECT_EQ(AttentionSession(c).Prefill(qkv, 0, c.tokens), expected); });
  }
}

TEST(AttentionSequenceCases, LargeScoresStayFinite) {
  for (const DType dtype : {kBF16, kF32}) {
    const AttentionCase c = {dtype, {1, 64, 0}, 64, 1, 140};
    const Values qkv = RandomProjections(c, 4, 40);
    const AttentionReference reference(c, qkv);
    const Values o = AttentionSession(c).Prefill(qkv, 0, c.tokens);
    ExpectRows(reference, o, 0, c.tokens, 0, 0);
  }
}

}  // namespace
}  // namespace hippodrome::cuda::attention_prefill_test
