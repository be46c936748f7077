// Attention of several sequences on a device and in double precision.
#ifndef HIPPODROME_TESTS_KERNELS_CUDA_ATTENTION_ATTENTION_PROBLEM_H_
#define HIPPODROME_TESTS_KERNELS_CUDA_ATTENTION_ATTENTION_PROBLEM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/attention/attention.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda {

using Values = std::vector<float>;

inline constexpr double kBF16Roundoff = 0x1p-9;

// `tokens` tokens of each of `sequences` sequences.
struct AttentionCase {
  DType dtype = DType::kBF16;
  AttentionShape shape;
  int64_t page_tokens = 64;
  int64_t sequences = 1;
  int64_t tokens = 1;
  int64_t gap = 0;  // elements before each row of qkv and o

  int64_t width() const { return shape.heads * shape.head_dim; }
};

inline Values InverseFrequencies(const AttentionShape& shape) {
  Values values;
  for (int64_t j = 0; j < shape.rotary_dim / 2; ++j) {
    values.push_back(static_cast<float>(
        std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(shape.rotary_dim))));
  }
  return values;
}

// [sequences, tokens, 3 d], as the activations' type holds them.
inline Values RandomProjections(const AttentionCase& c, uint32_t seed, float scale = 1) {
  Values values = RandomValues(c.sequences * c.tokens * 3 * c.width(), seed, scale);
  for (float& value : values) value = Stored(c.dtype, value);
  return values;
}

// The contract of Backend::AttentionSequence for whole sequences, in double.
class AttentionReference {
 public:
  AttentionReference(const AttentionCase& c, const Values& qkv)
      : case_(c), rows_(qkv.begin(), qkv.end()) {
    for (int64_t token = 0; token < c.sequences * c.tokens; ++token) {
      for (int64_t head = 0; head < 2 * c.shape.heads; ++head) {  // of q and k
        Rotate(token % c.tokens, &rows_[Index(token, head)]);
      }
    }
    tolerance_ = ErrorBound();
  }

  // o of one token, [d].
  std::vector<double> Row(int64_t sequence, int64_t token) const {
    std::vector<double> o(static_cast<size_t>(case_.width()));
    for (int64_t head = 0; head < case_.shape.heads; ++head) {
      Attend(sequence * case_.tokens, token, head, o.data() + head * case_.shape.head_dim);
    }
    return o;
  }

  // Of an element.
  double tolerance() const { return tolerance_; }

 private:
  // Heads of q, then of k, then of v.
  size_t Index(int64_t row, int64_t head) const {
    return static_cast<size_t>(3 * row * case_.width() + head * case_.shape.head_dim);
  }

  void Rotate(int64_t position, double* row) const {
    const Values inv_freq = InverseFrequencies(case_.shape);
    const size_t half = inv_freq.size();
    for (size_t j = 0; j < half; ++j) {
      const double angle = static_cast<double>(position) * inv_freq[j];
      const double x1 = row[j];
      const double x2 = row[half + j];
      row[j] = x1 * std::cos(angle) - x2 * std::sin(angle);
      row[half + j] = x1 * std::sin(angle) + x2 * std::cos(angle);
    }
  }

  // first: the row of the sequence's first token.
  void Attend(int64_t first, int64_t token, int64_t head, double* o) const {
    const int64_t n = case_.shape.head_dim;
    const int64_t heads = case_.shape.heads;
    const double* q = &rows_[Index(first + token, head)];
    const int64_t seen = case_.shape.FirstSeen(token);
    std::vector<double> scores;
    for (int64_t s = seen; s <= token; ++s) {
      scores.push_back(std::inner_product(q, q + n, &rows_[Index(first + s, heads + head)], 0.0) /
                       std::sqrt(static_cast<double>(n)));
    }
    const double max = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (int64_t s = seen; s <= token; ++s) {
      const double p = std::exp(scores[static_cast<size_t>(s - seen)] - max);
      const double* v = &rows_[Index(first + s, 2 * heads + head)];
      total += p;
      for (int64_t j = 0; j < n; ++j) o[j] += p * v[j];
    }
    for (int64_t j = 0; j < n; ++j) o[j] /= total;
  }

  // With u the rounding of the activations: rotated q and k are rounded to it, which changes a
  // score by 2 u |q| |k| at most and a weight by twice that, relatively; weights and results are
  // rounded once each. In f32 scores err by head_dim roundings, sums by one for each token.
  double ErrorBound() const {
    const double scores =
        LargestNorm(0) * LargestNorm(1) / std::sqrt(static_cast<double>(case_.shape.head_dim));
    const double u = case_.dtype == DType::kBF16 ? kBF16Roundoff : kUnitRoundoff;
    const double operands = case_.shape.rotary_dim == 0 ? 0 : 2 * u;
    const double sums = Gamma(case_.shape.head_dim + 8);
    return LargestNorm(2, 1) *
           (2 * scores * (operands + sums) + 2 * u + Gamma(2 * case_.tokens + 16));
  }

  // The largest Euclidean norm of the part's heads, or of `elements` adjacent elements.
  double LargestNorm(int64_t part, int64_t elements = 0) const {
    if (elements == 0) elements = case_.shape.head_dim;
    double largest = 0;
    for (int64_t token = 0; token < case_.sequences * case_.tokens; ++token) {
      const double* row = &rows_[Index(token, part * case_.shape.heads)];
      for (int64_t j = 0; j < case_.width(); j += elements) {
        largest = std::max(largest, std::inner_product(row + j, row + j + elements, row + j, 0.0));
      }
    }
    return std::sqrt(largest);
  }

  const AttentionCase case_;
  std::vector<double> rows_;  // [sequences, tokens, 3 d], q and k rotated
  double tolerance_;
};

// The sequences of a case in pages of one pool, scattered, all NaN before something is stored.
class AttentionSession {
 public:
  explicit AttentionSession(const AttentionCase& c)
      : case_(c), columns_((c.tokens + c.page_tokens - 1) / c.page_tokens) {
    const int64_t count = c.sequences * columns_ + 1;
    pages_ = std::make_unique<PagedRows>(device_, c.shape, count, c.page_tokens, c.dtype);
    cudaMemset(pages_->data(), 0xff, static_cast<size_t>(count * pages_->bytes_per_page()));
    const Values inv_freq = InverseFrequencies(c.shape);
    inv_freq_ = NewMatrix(device_, 1, static_cast<int64_t>(inv_freq.size()), DType::kF32);
    CopyIn(device_, inv_freq, inv_freq_);
    table_values_.resize(static_cast<size_t>(c.sequences * columns_));
    std::iota(table_values_.begin(), table_values_.end(), 1);
    std::shuffle(table_values_.begin(), table_values_.end(), std::mt19937(11));
    tables_ = NewMatrix(device_, c.sequences, columns_, DType::kI32);
  }

  Device& device() { return device_; }

  // Makes a sequence inert for AttentionSequence.
  void Disable(int64_t sequence) { inert_ = sequence; }

  // Tokens [start, start + count) of all sequences of `qkv`: o [sequences, count, d].
  Values Prefill(const Values& qkv, int64_t start, int64_t count) {
    std::vector<SequencePart> parts;
    for (int64_t i = 0; i < case_.sequences; ++i) {
      parts.push_back(
          {.tokens = static_cast<int32_t>(count), .start = static_cast<int32_t>(start)});
    }
    return Parts(qkv, parts);
  }

  // Of part i the tokens of sequence i in `qkv`, with any slot and rows: o of its rows.
  Values Parts(const Values& qkv, std::vector<SequencePart> parts) {
    Values rows;
    int32_t row = 0;
    for (int64_t i = 0; i < case_.sequences; ++i) {
      SequencePart& part = parts[static_cast<size_t>(i)];
      part.slot = i == inert_ ? -1 : static_cast<int32_t>(i);
      part.first_row = row;
      row += part.tokens;
      for (int32_t t = 0; t < part.tokens; ++t) Append(qkv, i, part.start + t, rows);
    }
    std::vector<int64_t> starts;
    for (const SequencePart& part : parts) starts.push_back(part.start);
    UploadTables(starts);
    const DeviceMatrix in = Rows(rows, 3 * case_.width());
    const DeviceMatrix out = Output(row);
    AttentionSequence(device_, {.shape = case_.shape,
                                .qkv = in.view(),
                                .inv_freq = inv_freq_,
                                .pages = *pages_,
                                .page_tables = tables_,
                                .parts = parts,
                                .o = out.view()});
    return Result(out);
  }

  // The token at positions[i] of sequence i for all sequences, -1 for none: o [sequences, d].
  Values Step(const Values& qkv, const std::vector<int32_t>& positions) {
    Values rows;
    for (int64_t i = 0; i < case_.sequences; ++i) {
      Append(qkv, i, std::max(0, positions[static_cast<size_t>(i)]), rows);
    }
    UploadTables({positions.begin(), positions.end()});
    const DeviceMatrix in = Rows(rows, 3 * case_.width());
    const DeviceMatrix out = Output(case_.sequences);
    const OwnedTensor at = NewMatrix(device_, 1, case_.sequences, DType::kI32);
    CopyIn(device_, positions, at);
    AttentionStep(device_, {.shape = case_.shape,
                            .qkv = in.view(),
                            .inv_freq = inv_freq_,
                            .pages = *pages_,
                            .page_tables = tables_,
                            .positions = at,
                            .o = out.view()});
    return Result(out);
  }
  // The same position of all sequences.
  Values Step(const Values& qkv, int64_t position) {
    return Step(qkv, std::vector<int32_t>(static_cast<size_t>(case_.sequences),
                                          static_cast<int32_t>(position)));
  }

 private:
  // What sequences see that go on from there; then a page of NaN.
  void UploadTables(const std::vector<int64_t>& starts) {
    std::vector<int32_t> values(table_values_.size());
    for (int64_t i = 0; i < case_.sequences; ++i) {
      const int64_t first =
          case_.shape.FirstSeen(starts[static_cast<size_t>(i)]) / case_.page_tokens;
      const auto row = table_values_.begin() + i * columns_;
      std::copy(row + std::min(first, columns_), row + columns_, values.begin() + i * columns_);
    }
    CopyIn(device_, values, tables_);
  }
  DeviceMatrix Rows(const Values& values, int64_t cols) {
    const auto rows = static_cast<int64_t>(values.size()) / cols;
    return {device_, {rows, cols, case_.dtype, case_.gap}, values};
  }
  DeviceMatrix Output(int64_t rows) {
    return {device_, {rows, case_.width(), case_.dtype, case_.gap}};
  }

  void Append(const Values& qkv, int64_t sequence, int64_t token, Values& rows) const {
    const auto first = qkv.begin() + (sequence * case_.tokens + token) * 3 * case_.width();
    rows.insert(rows.end(), first, first + 3 * case_.width());
  }

  static Values Result(const DeviceMatrix& out) {
    EXPECT_TRUE(out.SurroundingsAreZero());
    return out.values();
  }

  const AttentionCase case_;
  const int64_t columns_;
  Device device_;
  std::unique_ptr<PagedRows> pages_;
  OwnedTensor inv_freq_;
  std::vector<int32_t> table_values_;
  OwnedTensor tables_;
  int64_t inert_ = -1;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_TESTS_KERNELS_CUDA_ATTENTION_ATTENTION_PROBLEM_H_
