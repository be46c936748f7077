// The training operations of the reference on attention.
#include <cmath>

#include "tests/reference/attention.h"
#include "tests/reference/gradient.h"
#include "tests/reference/training_reference.h"

namespace hippodrome::reference {
namespace {

// The rotated q, k, v of one head of one sequence, and their gradients. [T, head_dim] each.
struct Head {
  Matrix q, k, v;
};

void RotateRows(const AttentionShape& shape, Tensor inv_freq, int64_t direction, Matrix& x) {
  for (int64_t t = 0; t < x.rows; ++t) {
    Rotate(shape, inv_freq, direction * t, &x.values[t * x.cols]);
  }
}

// S_ts = q_t . k_s / sqrt(head_dim), P_t = softmax over the `seen` s of token t, o_t = sum P_ts
// v_s:
//   dP_ts = do_t . v_s;  dS_ts = P_ts (dP_ts - sum_s P_ts dP_ts)
//   dq_t += dS_ts k_s / sqrt(head_dim);  dk_s += dS_ts q_t / sqrt(head_dim);  dv_s += P_ts do_t
void AttendBackward(const Head& x, int64_t t, const std::vector<int64_t>& seen, const Matrix& d_o,
                    Head& dx) {
  if (seen.empty()) return;
  const int64_t head_dim = x.q.cols;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  std::vector<double> p(seen.size());
  std::vector<double> dp(seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    for (int64_t e = 0; e < head_dim; ++e) {
      p[i] += x.q(t, e) * x.k(seen[i], e) * scale;
      dp[i] += d_o(t, e) * x.v(seen[i], e);
    }
  }
  Softmax(p);
  double mean = 0;
  for (size_t i = 0; i < seen.size(); ++i) mean += p[i] * dp[i];
  for (size_t i = 0; i < seen.size(); ++i) {
    const double ds = p[i] * (dp[i] - mean);
    for (int64_t e = 0; e < head_dim; ++e) {
      dx.q(t, e) += ds * x.k(seen[i], e) * scale;
      dx.k(seen[i], e) += ds * x.q(t, e) * scale;
      dx.v(seen[i], e) += p[i] * d_o(t, e);
    }
  }
}

Matrix Slice(Tensor x, int64_t column, int64_t count) {
  Matrix m(x.rows, count);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < count; ++c) m(r, c) = At(x, r, column + c);
  }
  return m;
}

// All heads of one sequence. `seen(t)`: the tokens that token t attends to. inv_freq: empty without
// rotary. Returns dqkv.
template <typename Seen>
Matrix SequenceBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, Seen seen,
                        Tensor d_o) {
  const int64_t head_dim = shape.head_dim;
  const int64_t d = shape.heads * head_dim;
  Matrix dqkv(qkv.rows, 3 * d);
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t at = h * head_dim;
    Head x{Slice(qkv, at, head_dim), Slice(qkv, d + at, head_dim),
           Slice(qkv, 2 * d + at, head_dim)};
    const Matrix zero(qkv.rows, head_dim);
    Head dx{zero, zero, zero};
    RotateRows(shape, inv_freq, 1, x.q);
    RotateRows(shape, inv_freq, 1, x.k);
    const Matrix head_do = Slice(d_o, at, head_dim);
    for (int64_t t = 0; t < qkv.rows; ++t) AttendBackward(x, t, seen(t), head_do, dx);
    RotateRows(shape, inv_freq, -1, dx.q);
    RotateRows(shape, inv_freq, -1, dx.k);
    for (int64_t t = 0; t < qkv.rows; ++t) {
      for (int64_t e = 0; e < head_dim; ++e) {
        dqkv(t, at + e) = dx.q(t, e);
        dqkv(t, d + at + e) = dx.k(t, e);
        dqkv(t, 2 * d + at + e) = dx.v(t, e);
      }
    }
  }
  return dqkv;
}

}  // namespace

void TrainingReference::CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                        int64_t sequences, Tensor o) {
  AttentionPages pages(shape, sequences, qkv.rows / sequences);
  const OwnedTensor tables = NewIndices(sequences, 1);
  for (int64_t b = 0; b < sequences; ++b) IndexAt(tables, b, 0) = static_cast<int32_t>(b);
  AttentionSequence(shape, qkv, inv_freq, pages, tables, 0, o);
}

void TrainingReference::CausalAttentionBackward(const AttentionShape& shape, Tensor qkv,
                                                Tensor inv_freq, int64_t sequences, Tensor d_o,
                                                Gradient dqkv) {
  const int64_t tokens = qkv.rows / sequences;
  const auto past = [](int64_t t) {
    std::vector<int64_t> seen;
    for (int64_t s = 0; s <= t; ++s) seen.push_back(s);
    return seen;
  };
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t first = b * tokens;
    Put(SequenceBackward(shape, qkv.Rows(first, tokens), inv_freq, past, d_o.Rows(first, tokens)),
        dqkv, first);
  }
}

void TrainingReference::BidirectionalAttentionBackward(const AttentionShape& shape, Tensor qkv,
                                                       Tensor mask, Tensor d_o, Gradient dqkv) {
  AttentionShape unrotated = shape;
  unrotated.rotary_dim = 0;
  for (int64_t b = 0; b < mask.rows; ++b) {
    std::vector<int64_t> unmasked;
    for (int64_t s = 0; s < mask.cols; ++s) {
      if (IndexAt(mask, b, s) != 0) unmasked.push_back(s);
    }
    const auto seen = [&](int64_t) { return unmasked; };
    const int64_t first = b * mask.cols;
    Put(SequenceBackward(unrotated, qkv.Rows(first, mask.cols), Tensor(), seen,
                         d_o.Rows(first, mask.cols)),
        dqkv, first);
  }
}

}  // namespace hippodrome::reference
