// The training operations of the reference on attention.
#include <cmath>
#include <numeric>

#include "kernels/dropout_bits.h"
#include "tests/reference/attention.h"
#include "tests/reference/training/gradient.h"
#include "tests/reference/training/training_reference.h"

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

Matrix Slice(Tensor x, int64_t column, int64_t count) {
  Matrix m(x.rows, count);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < count; ++c) m(r, c) = At(x, r, column + c);
  }
  return m;
}

Head LoadHead(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, int64_t h) {
  const int64_t d = shape.heads * shape.head_dim;
  const int64_t at = h * shape.head_dim;
  Head x{Slice(qkv, at, shape.head_dim), Slice(qkv, d + at, shape.head_dim),
         Slice(qkv, 2 * d + at, shape.head_dim)};
  RotateRows(shape, inv_freq, 1, x.q);
  RotateRows(shape, inv_freq, 1, x.k);
  return x;
}

// What dropout multiplies the weights of one head of one sequence by.
struct HeadDropout {
  AttentionDropout dropout;
  int64_t first_row;  // (b heads + h) T

  double Factor(int64_t t, int64_t s) const {
    const DropoutRow row = DropoutRowOf(dropout.seed, first_row + t);
    const uint32_t bits = DropoutBits(row, static_cast<uint32_t>(s));
    return bits < DropoutThreshold(dropout.p) ? 0 : 1 / (1 - dropout.p);
  }
};

// P_ts = softmax over the `seen` s of S_ts = q_t . k_s / sqrt(head_dim).
std::vector<double> Weights(const Head& x, int64_t t, const std::vector<int64_t>& seen) {
  std::vector<double> p(seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    for (int64_t e = 0; e < x.q.cols; ++e) p[i] += x.q(t, e) * x.k(seen[i], e);
    p[i] /= std::sqrt(static_cast<double>(x.q.cols));
  }
  Softmax(p);
  return p;
}

// o_t = sum_s M_ts P_ts v_s with the factors M of dropout:
//   dP_ts = M_ts do_t . v_s;  dS_ts = P_ts (dP_ts - sum_s P_ts dP_ts)
//   dq_t += dS_ts k_s / sqrt(head_dim);  dk_s += dS_ts q_t / sqrt(head_dim)
//   dv_s += M_ts P_ts do_t
void AttendBackward(const Head& x, int64_t t, const std::vector<int64_t>& seen,
                    const HeadDropout& dropout, const Matrix& d_o, Head& dx) {
  if (seen.empty()) return;
  const int64_t head_dim = x.q.cols;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  const std::vector<double> p = Weights(x, t, seen);
  std::vector<double> dp(seen.size());
  double mean = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    for (int64_t e = 0; e < head_dim; ++e) {
      dp[i] += dropout.Factor(t, seen[i]) * d_o(t, e) * x.v(seen[i], e);
    }
    mean += p[i] * dp[i];
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    const double ds = p[i] * (dp[i] - mean);
    for (int64_t e = 0; e < head_dim; ++e) {
      dx.q(t, e) += ds * x.k(seen[i], e) * scale;
      dx.k(seen[i], e) += ds * x.q(t, e) * scale;
      dx.v(seen[i], e) += dropout.Factor(t, seen[i]) * p[i] * d_o(t, e);
    }
  }
}

// All heads of sequence `b` of a batch. `seen(t)`: the tokens that token t attends to. inv_freq:
// empty without rotary. Returns dqkv.
template <typename Seen>
Matrix SequenceBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, int64_t b,
                        const AttentionDropout& dropout, Seen seen, Tensor d_o) {
  const int64_t head_dim = shape.head_dim;
  const int64_t d = shape.heads * head_dim;
  Matrix dqkv(qkv.rows, 3 * d);
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t at = h * head_dim;
    const Head x = LoadHead(shape, qkv, inv_freq, h);
    const HeadDropout drops = {dropout, (b * shape.heads + h) * qkv.rows};
    const Matrix zero(qkv.rows, head_dim);
    Head dx{zero, zero, zero};
    const Matrix head_do = Slice(d_o, at, head_dim);
    for (int64_t t = 0; t < qkv.rows; ++t) AttendBackward(x, t, seen(t), drops, head_do, dx);
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

// The tokens that token t of a causal sequence attends to.
std::vector<int64_t> Past(int64_t t) {
  std::vector<int64_t> seen(t + 1);
  std::iota(seen.begin(), seen.end(), 0);
  return seen;
}

}  // namespace

void TrainingReference::CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                        int64_t sequences, const AttentionDropout& dropout,
                                        Tensor o) {
  const int64_t tokens = qkv.rows / sequences;
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t first = b * tokens;
    for (int64_t h = 0; h < shape.heads; ++h) {
      const Head x = LoadHead(shape, qkv.Rows(first, tokens), inv_freq, h);
      const HeadDropout drops = {dropout, (b * shape.heads + h) * tokens};
      for (int64_t t = 0; t < tokens; ++t) {
        const std::vector<double> p = Weights(x, t, Past(t));
        for (int64_t e = 0; e < shape.head_dim; ++e) {
          double sum = 0;
          for (int64_t s = 0; s <= t; ++s) sum += drops.Factor(t, s) * p[s] * x.v(s, e);
          At(o, first + t, h * shape.head_dim + e) = sum;
        }
      }
    }
  }
}

void TrainingReference::CausalAttentionBackward(const AttentionShape& shape, Tensor qkv,
                                                Tensor inv_freq, int64_t sequences,
                                                const AttentionDropout& dropout, Tensor d_o,
                                                Gradient dqkv) {
  const int64_t tokens = qkv.rows / sequences;
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t first = b * tokens;
    Put(SequenceBackward(shape, qkv.Rows(first, tokens), inv_freq, b, dropout, Past,
                         d_o.Rows(first, tokens)),
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
    Put(SequenceBackward(unrotated, qkv.Rows(first, mask.cols), Tensor(), b, /*dropout=*/{}, seen,
                         d_o.Rows(first, mask.cols)),
        dqkv, first);
  }
}

}  // namespace hippodrome::reference
