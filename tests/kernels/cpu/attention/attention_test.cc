#include "kernels/cpu/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::attention_test {
namespace {

using Values = std::vector<float>;

struct Layer {
  AttentionShape shape;
  Values inv_freq;

  int64_t width() const { return shape.heads * shape.head_dim; }
};

Layer MakeLayer(int64_t heads, int64_t head_dim, int64_t rotary_dim, int64_t window = 0) {
  Layer layer = {{heads, head_dim, rotary_dim, window}, {}};
  for (int64_t j = 0; j < rotary_dim / 2; ++j) {
    layer.inv_freq.push_back(static_cast<float>(
        std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(rotary_dim))));
  }
  return layer;
}

// Row `t` of the part `part` (0 q, 1 k, 2 v) of one head, rotated where that applies, in double.
std::vector<double> HeadRow(const Layer& layer, const Values& qkv, int64_t t, int64_t part,
                            int64_t head) {
  const int64_t n = layer.shape.head_dim;
  const size_t at = static_cast<size_t>((3 * t + part) * layer.width() + head * n);
  std::vector<double> row(qkv.begin() + static_cast<int64_t>(at),
                          qkv.begin() + static_cast<int64_t>(at) + n);
  const size_t half = part == 2 ? 0 : layer.inv_freq.size();
  for (size_t j = 0; j < half; ++j) {
    const double angle = static_cast<double>(t) * layer.inv_freq[j];
    const double x1 = row[j];
    const double x2 = row[half + j];
    row[j] = x1 * std::cos(angle) - x2 * std::sin(angle);
    row[half + j] = x1 * std::sin(angle) + x2 * std::cos(angle);
  }
  return row;
}

// The formula of the contract for all rows of one sequence.
std::vector<double> Reference(const Layer& layer, const Values& qkv, int64_t tokens) {
  const int64_t n = layer.shape.head_dim;
  std::vector<double> o(static_cast<size_t>(tokens * layer.width()));
  for (int64_t head = 0; head < layer.shape.heads; ++head) {
    std::vector<std::vector<double>> k, v;
    for (int64_t t = 0; t < tokens; ++t) {
      k.push_back(HeadRow(layer, qkv, t, 1, head));
      v.push_back(HeadRow(layer, qkv, t, 2, head));
      const std::vector<double> q = HeadRow(layer, qkv, t, 0, head);
      const auto seen = static_cast<size_t>(layer.shape.FirstSeen(t));
      std::vector<double> scores;
      for (size_t s = seen; s < k.size(); ++s) {
        scores.push_back(std::inner_product(q.begin(), q.end(), k[s].begin(), 0.0) /
                         std::sqrt(static_cast<double>(n)));
      }
      const double max = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      double* out = &o[static_cast<size_t>(t * layer.width() + head * n)];
      for (size_t s = 0; s < scores.size(); ++s) {
        const double p = std::exp(scores[s] - max);
        total += p;
        for (int64_t j = 0; j < n; ++j) out[j] += p * v[seen + s][static_cast<size_t>(j)];
      }
      for (int64_t j = 0; j < n; ++j) out[j] /= total;
    }
  }
  return o;
}

// Scores are below head_dim * |q| |k| / sqrt(head_dim) in size and err by (head_dim + 4) roundings
// of it, which the exponential turns into a relative error of the weights; the sum over keys adds
// one rounding per key and block. |v| <= 1. Rounding keys and values to bf16 adds half a step of
// each: of the score, which counts twice, and of the value.
double Tolerance(const Layer& layer, int64_t tokens, double scale, DType dtype = DType::kF32) {
  const int64_t n = layer.shape.head_dim;
  const double largest_score = std::sqrt(static_cast<double>(n)) * scale * scale;
  const double rounding = dtype == DType::kBF16 ? 0x1p-9 : 0;
  return 2 * (Gamma(n + 8) + rounding) * std::max(1.0, largest_score) + Gamma(2 * tokens + 16) +
         rounding;
}

// All bits of a NaN, of f32 as of bf16.
void FillWithNan(const PagedRows& pages, int32_t page) {
  std::fill_n(pages.Page(page), pages.bytes_per_page(), static_cast<char>(0xff));
}

// One sequence in pages of its own, scattered over the pool in reverse. What it does not see any
// more is NaN.
class Session {
 public:
  Session(const Layer& layer, int64_t page_tokens, int64_t tokens, int threads,
          DType dtype = DType::kF32)
      : layer_(layer), count_((tokens + page_tokens - 1) / page_tokens), pool_(threads) {
    pages_ = std::make_unique<PagedRows>(layer.shape, count_ + 2, page_tokens, dtype);
    table_ = NewMatrix(1, count_, DType::kI32);
    inv_freq_ = NewMatrix(1, static_cast<int64_t>(layer.inv_freq.size()), DType::kF32);
    CopyIn(layer.inv_freq, inv_freq_.view);
  }

  Values Prefill(const Values& qkv, int64_t start, int64_t count) {
    SetTable(start);
    const StridedMatrix in = Rows(qkv, start, count);
    const StridedMatrix out(count, layer_.width(), 1);
    const SequencePart part = {
        .slot = 0, .tokens = static_cast<int32_t>(count), .start = static_cast<int32_t>(start)};
    AttentionSequence(pool_, layer_.shape, in.view(), inv_freq_, *pages_, table_, {{&part, 1}, {}},
                      out.view());
    return out.values();
  }

  // Tokens in a row, which see the same pages.
  Values Step(const Values& qkv, int64_t position, int64_t count = 1) {
    SetTable(position);
    const StridedMatrix in = Rows(qkv, position, count);
    const StridedMatrix out(count, layer_.width(), 1);
    const OwnedTensor positions = NewMatrix(1, count, DType::kI32);
    const OwnedTensor tables = NewMatrix(count, count_, DType::kI32);
    for (int64_t i = 0; i < count; ++i) {
      I32Row(positions, 0)[i] = static_cast<int32_t>(position + i);
      std::copy_n(I32Row(table_, 0), count_, I32Row(tables, i));
    }
    AttentionStep(pool_, layer_.shape, in.view(), inv_freq_, *pages_, tables, positions,
                  out.view());
    return out.values();
  }

 private:
  void SetTable(int64_t start) {
    const int64_t first = layer_.shape.FirstSeen(start) / pages_->page_tokens();
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t page = count_ - first - i;
      I32Row(table_, 0)[i] = static_cast<int32_t>(std::max<int64_t>(page, 0));
    }
    for (auto page = static_cast<int32_t>(count_ + 1 - first); page <= count_; ++page) {
      FillWithNan(*pages_, page);
    }
  }

  StridedMatrix Rows(const Values& qkv, int64_t start, int64_t count) const {
    const int64_t width = 3 * layer_.width();
    return StridedMatrix(
        count, width, 3,
        Values(qkv.begin() + start * width, qkv.begin() + (start + count) * width));
  }

  const Layer& layer_;
  int64_t count_;
  ThreadPool pool_;
  std::unique_ptr<PagedRows> pages_;
  OwnedTensor table_;
  OwnedTensor inv_freq_;
};

void Append(const Values& more, Values& all) { all.insert(all.end(), more.begin(), more.end()); }

void ExpectNear(const Values& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
  }
}

struct Case {
  int64_t heads, head_dim, rotary_dim, page_tokens, tokens;
  int64_t window = 0;
};

// The type of the keys and values besides.
class AttentionTest : public testing::TestWithParam<std::tuple<Case, DType>> {
 protected:
  static const Case& c() { return std::get<0>(GetParam()); }
  static DType dtype() { return std::get<1>(GetParam()); }
};

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
constexpr Case kShapes[] = {{1, 1, 0, 4, 1},       {2, 3, 2, 5, 9},     {3, 16, 0, 16, 63},
                            {2, 64, 16, 64, 65},   {1, 33, 32, 7, 130}, {2, 64, 64, 16, 300},
                            {1, 100, 64, 16, 140}, {1, 256, 64, 32, 70}};
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest,
                         testing::Combine(testing::ValuesIn(kShapes), testing::ValuesIn(kTypes)));

// Windows that begin on and beside the borders of blocks, of tiles and of blocks of queries.
constexpr Case kWindows[] = {{1, 8, 0, 64, 200, 1},    {2, 16, 8, 64, 300, 64},
                             {1, 33, 32, 64, 330, 65}, {1, 8, 0, 64, 400, 100},
                             {1, 8, 4, 64, 330, 127},  {1, 8, 0, 64, 600, 256},
                             {1, 8, 0, 64, 130, 1000}};
INSTANTIATE_TEST_SUITE_P(Windows, AttentionTest,
                         testing::Combine(testing::ValuesIn(kWindows), testing::ValuesIn(kTypes)));

TEST_P(AttentionTest, PrefillMatchesTheFormula) {
  const Layer layer = MakeLayer(c().heads, c().head_dim, c().rotary_dim, c().window);
  const Values qkv = RandomValues(c().tokens * 3 * layer.width(), 1);
  Session session(layer, c().page_tokens, c().tokens, 2, dtype());
  ExpectNear(session.Prefill(qkv, 0, c().tokens), Reference(layer, qkv, c().tokens),
             Tolerance(layer, c().tokens, 1, dtype()));
}

TEST_P(AttentionTest, StepsMatchTheFormula) {
  const Layer layer = MakeLayer(c().heads, c().head_dim, c().rotary_dim, c().window);
  const Values qkv = RandomValues(c().tokens * 3 * layer.width(), 2);
  Session session(layer, c().page_tokens, c().tokens, 2, dtype());
  Values o;
  for (int64_t t = 0; t < c().tokens; ++t) Append(session.Step(qkv, t), o);
  ExpectNear(o, Reference(layer, qkv, c().tokens), Tolerance(layer, c().tokens, 1, dtype()));
}

// Up to the end of a block each, and once more from before some of them.
TEST_P(AttentionTest, TokensInARowAreStepsOneByOne) {
  const Layer layer = MakeLayer(c().heads, c().head_dim, c().rotary_dim, c().window);
  const Values qkv = RandomValues(c().tokens * 3 * layer.width(), 2);
  const Values other = RandomValues(c().tokens * 3 * layer.width(), 4);
  Session single(layer, c().page_tokens, c().tokens, 1, dtype());
  Session rows(layer, c().page_tokens, c().tokens, 3, dtype());
  for (int64_t t = 0; t < c().tokens;) {
    const int64_t count = std::min(kCaptureTokens - t % kCaptureTokens, c().tokens - t);
    const int64_t same =
        layer.shape.FirstSeen(t + count - 1) == layer.shape.FirstSeen(t) ? count : 1;
    (void)rows.Step(other, t, same);
    const Values o = rows.Step(qkv, t, same);
    Values alone;
    for (int64_t i = 0; i < same; ++i) Append(single.Step(qkv, t + i), alone);
    ASSERT_EQ(o, alone) << "from token " << t;
    t += same;
  }
}

TEST_P(AttentionTest, ChunksGiveTheSameBits) {
  const Layer layer = MakeLayer(c().heads, c().head_dim, c().rotary_dim, c().window);
  const Values qkv = RandomValues(c().tokens * 3 * layer.width(), 3);
  const Values whole =
      Session(layer, c().page_tokens, c().tokens, 1, dtype()).Prefill(qkv, 0, c().tokens);
  for (int64_t chunk : {1, 7, 64, 65}) {
    Session session(layer, c().page_tokens, c().tokens, 3, dtype());
    Values o;
    for (int64_t t = 0; t < c().tokens; t += chunk) {
      Append(session.Prefill(qkv, t, std::min(chunk, c().tokens - t)), o);
    }
    EXPECT_EQ(o, whole) << "chunks of " << chunk;
  }
}

// What is in bf16 already, and not rotated, is kept as it is.
TEST(AttentionCases, ValuesOfBF16GiveTheSameBitsInBothTypes) {
  const Layer layer = MakeLayer(2, 33, 0);
  Values qkv = RandomValues(150 * 3 * layer.width(), 9);
  for (float& x : qkv) x = ToFloat(ToBF16(x));
  Session wide(layer, 16, 150, 1);
  Session half(layer, 16, 150, 1, DType::kBF16);
  EXPECT_EQ(half.Prefill(qkv, 0, 149), wide.Prefill(qkv, 0, 149));
  EXPECT_EQ(half.Step(qkv, 149), wide.Step(qkv, 149));
}

TEST(AttentionCases, AWindowThatSeesAllChangesNoBit) {
  const Values qkv = RandomValues(300 * 3 * 16, 8);
  const Layer all = MakeLayer(2, 8, 4);
  const Layer windowed = MakeLayer(2, 8, 4, 300);
  Session expected(all, 64, 300, 1);
  Session session(windowed, 64, 300, 1);
  EXPECT_EQ(session.Prefill(qkv, 0, 299), expected.Prefill(qkv, 0, 299));
  EXPECT_EQ(session.Step(qkv, 299), expected.Step(qkv, 299));
}

// Sequences of several starts and lengths, one of them inert, with their pages among each other.
TEST(AttentionCases, PartsTogetherArePartsAlone) {
  const Layer layer = MakeLayer(2, 24, 8);
  const int64_t width = layer.width();
  constexpr int64_t kPageTokens = 16;
  const std::vector<SequencePart> rests = {{.slot = 0, .tokens = 300, .start = 0},
                                           {.slot = 1, .tokens = 1, .start = 70},
                                           {.slot = -1, .tokens = 9, .start = 5},
                                           {.slot = 3, .tokens = 40, .start = 100},
                                           {.slot = 4, .tokens = 65, .start = 0}};
  const StridedMatrix freq(1, 4, 0, layer.inv_freq);
  const auto run = [&](int threads, bool together) {
    ThreadPool pool(threads);
    PagedRows pages(layer.shape, 5 * 20, kPageTokens, DType::kBF16);
    OwnedTensor tables = NewMatrix(5, 20, DType::kI32);
    for (int32_t i = 0; i < 100; ++i) I32Row(tables, i % 5)[i / 5] = i;
    std::vector<SequencePart> parts = rests;
    Values rows;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t all = parts[i].start + parts[i].tokens;
      const Values qkv = RandomValues(all * 3 * width, static_cast<uint32_t>(i));
      const auto rest = qkv.begin() + parts[i].start * 3 * width;
      if (parts[i].start > 0) {
        const StridedMatrix in(parts[i].start, 3 * width, 0, Values(qkv.begin(), rest));
        const StridedMatrix out(parts[i].start, width, 0);
        AttentionSequence(pool, layer.shape, in.view(), freq.view(), pages,
                          tables.view.Rows(static_cast<int64_t>(i), 1),
                          {WholeSequences(1, parts[i].start), {}}, out.view());
      }
      parts[i].first_row = static_cast<int32_t>(std::ssize(rows) / (3 * width));
      rows.insert(rows.end(), rest, qkv.end());
    }
    const int64_t count = std::ssize(rows) / (3 * width);
    const StridedMatrix in(count, 3 * width, 0, rows);
    const StridedMatrix out(count, width, 0);
    if (together) {
      AttentionSequence(pool, layer.shape, in.view(), freq.view(), pages, tables, {parts, {}},
                        out.view());
      return out.values();
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      SequencePart part = parts[i];
      part.first_row = 0;
      AttentionSequence(pool, layer.shape, in.view().Rows(parts[i].first_row, part.tokens),
                        freq.view(), pages, tables.view.Rows(static_cast<int64_t>(i), 1),
                        {{&part, 1}, {}}, out.view().Rows(parts[i].first_row, part.tokens));
    }
    return out.values();
  };
  const Values alone = run(1, false);
  EXPECT_EQ(run(1, true), alone);
  EXPECT_EQ(run(3, true), alone);
}

TEST(AttentionCases, LargeScoresStayFinite) {
  const Layer layer = MakeLayer(1, 16, 0);
  const Values qkv = RandomValues(100 * 3 * 16, 4, 40);
  Session session(layer, 16, 100, 1);
  const Values prefill = session.Prefill(qkv, 0, 100);
  ExpectNear(prefill, Reference(layer, qkv, 100), 40 * Tolerance(layer, 100, 40));
}

// Threads share the heads of a row as its part of all positions asks for.
TEST(AttentionCases, StepOfOneRowIsItsRowInABatch) {
  const Layer layer = MakeLayer(5, 24, 8);
  const int64_t width = layer.width();
  constexpr int64_t kRows = 5;
  constexpr int64_t kPageTokens = 4;
  const Values qkv = RandomValues(kRows * 3 * width, 5);
  const Values inv = layer.inv_freq;
  const int32_t positions[kRows] = {0, -1, 7, 3, 12};
  ThreadPool pool(3);

  // Pages with the same contents each time, so that runs can be compared.
  const auto run = [&](int64_t first, int64_t count) {
    PagedRows pages(layer.shape, kRows * 4, kPageTokens, DType::kBF16);
    StridedMatrix freq(1, 4, 0, inv);
    OwnedTensor tables = NewMatrix(kRows, 4, DType::kI32);
    for (int32_t i = 0; i < kRows * 4; ++i) I32Row(tables, 0)[i] = i;
    for (int64_t row = 0; row < kRows; ++row) {
      const Values past = RandomValues(12 * 3 * width, 6 + static_cast<uint32_t>(row));
      const StridedMatrix in(12, 3 * width, 0, past);
      const StridedMatrix out(12, width, 0);
      const std::vector<SequencePart> parts = WholeSequences(1, 12);
      AttentionSequence(pool, layer.shape, in.view(), freq.view(), pages, tables.view.Rows(row, 1),
                        {parts, {}}, out.view());
    }
    const StridedMatrix in(kRows, 3 * width, 0, qkv);
    const StridedMatrix out(count, width, 0);
    OwnedTensor at = NewMatrix(1, kRows, DType::kI32);
    CopyIn(positions, at.view);
    AttentionStep(pool, layer.shape, in.view().Rows(first, count), freq.view(), pages,
                  tables.view.Rows(first, count), at.view.Cols(first, count), out.view());
    return out.values();
  };

  const Values all = run(0, kRows);
  for (int64_t row = 0; row < kRows; ++row) {
    const Values expected(all.begin() + row * width, all.begin() + (row + 1) * width);
    EXPECT_EQ(run(row, 1), expected) << "row " << row;
  }
  for (int64_t j = 0; j < width; ++j) EXPECT_EQ(all[static_cast<size_t>(width + j)], 0);
}

TEST(AttentionCases, StaleRowsOfAPageAreNotRead) {
  const Layer layer = MakeLayer(1, 8, 0);
  PagedRows pages(layer.shape, 1, 16, DType::kF32);
  FillWithNan(pages, 0);
  ThreadPool pool(1);
  const StridedMatrix in(3, 24, 0, RandomValues(3 * 24, 7));
  const StridedMatrix out(3, 8, 0);
  OwnedTensor table = NewMatrix(1, 1, DType::kI32);
  const std::vector<SequencePart> parts = WholeSequences(1, 3);
  AttentionSequence(pool, layer.shape, in.view(), {}, pages, table, {parts, {}}, out.view());
  for (float value : out.values()) EXPECT_FALSE(std::isnan(value));
}

}  // namespace
}  // namespace hippodrome::cpu::attention_test
