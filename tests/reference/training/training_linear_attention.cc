// The training operations of the reference on linear attention, as the attention that it is:
//   a_ts = phi(q_t) . phi(k_s);  D_t = sum_{s <= t} a_ts + epsilon;  o_t = sum_{s <= t} a_ts v_s /
//   D_t
#include "tests/reference/linear_attention.h"
#include "tests/reference/training/gradient.h"
#include "tests/reference/training/training_reference.h"

namespace hippodrome::reference {
namespace {

// One head of one sequence: phi(q), phi(k) and v, [T, head_dim] each; or gradients of these.
struct LinearHead {
  LinearHead(int64_t tokens, int64_t head_dim)
      : q(tokens, head_dim), k(tokens, head_dim), v(tokens, head_dim) {}

  Matrix q, k, v;
};

// qkv: of the sequence.
LinearHead LoadLinearHead(const LinearAttentionShape& shape, Tensor qkv, int64_t head) {
  const int64_t d = shape.heads * shape.head_dim;
  const int64_t first = head * shape.head_dim;
  LinearHead x(qkv.rows, shape.head_dim);
  for (int64_t t = 0; t < qkv.rows; ++t) {
    for (int64_t e = 0; e < shape.head_dim; ++e) {
      x.q(t, e) = LinearAttentionFeature(At(qkv, t, first + e));
      x.k(t, e) = LinearAttentionFeature(At(qkv, t, d + first + e));
      x.v(t, e) = At(qkv, t, 2 * d + first + e);
    }
  }
  return x;
}

// What token t sees.
struct Weighted {
  std::vector<double> a;  // of s <= t
  double denominator = kLinearAttentionEpsilon;
  std::vector<double> o;
};

Weighted Weigh(const LinearHead& x, int64_t t) {
  Weighted w;
  w.o.resize(x.v.cols);
  for (int64_t s = 0; s <= t; ++s) {
    double a = 0;
    for (int64_t e = 0; e < x.q.cols; ++e) a += x.q(t, e) * x.k(s, e);
    w.a.push_back(a);
    w.denominator += a;
    for (int64_t e = 0; e < x.v.cols; ++e) w.o[e] += a * x.v(s, e);
  }
  for (double& o : w.o) o /= w.denominator;
  return w;
}

//   da_ts = do_t . (v_s - o_t) / D_t;  dv_s += a_ts / D_t do_t
//   dphi(q_t) += da_ts phi(k_s);  dphi(k_s) += da_ts phi(q_t)
void LinearTokenBackward(const LinearHead& x, int64_t t, const std::vector<double>& d_o,
                         LinearHead& dx) {
  const Weighted w = Weigh(x, t);
  for (int64_t s = 0; s <= t; ++s) {
    double da = 0;
    for (int64_t e = 0; e < x.v.cols; ++e) {
      da += d_o[e] * (x.v(s, e) - w.o[e]) / w.denominator;
      dx.v(s, e) += w.a[s] / w.denominator * d_o[e];
    }
    for (int64_t e = 0; e < x.q.cols; ++e) {
      dx.q(t, e) += da * x.k(s, e);
      dx.k(s, e) += da * x.q(t, e);
    }
  }
}

// phi' at an input that is known by its phi.
double FeatureSlope(double feature) { return feature > 1 ? 1 : feature; }

}  // namespace

void TrainingReference::CausalLinearAttention(const LinearAttentionShape& shape, Tensor qkv,
                                              int64_t sequences, Tensor o) {
  const int64_t tokens = qkv.rows / sequences;
  for (int64_t b = 0; b < sequences; ++b) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      const LinearHead x = LoadLinearHead(shape, qkv.Rows(b * tokens, tokens), head);
      for (int64_t t = 0; t < tokens; ++t) {
        const Weighted w = Weigh(x, t);
        for (int64_t e = 0; e < shape.head_dim; ++e) {
          At(o, b * tokens + t, head * shape.head_dim + e) = w.o[e];
        }
      }
    }
  }
}

void TrainingReference::CausalLinearAttentionBackward(const LinearAttentionShape& shape, Tensor qkv,
                                                      int64_t sequences, Tensor d_o,
                                                      Gradient dqkv) {
  const int64_t n = shape.head_dim;
  const int64_t d = shape.heads * n;
  const int64_t tokens = qkv.rows / sequences;
  Matrix all(qkv.rows, 3 * d);
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t row = b * tokens;
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t first = head * n;
      const LinearHead x = LoadLinearHead(shape, qkv.Rows(row, tokens), head);
      LinearHead dx(tokens, n);
      for (int64_t t = 0; t < tokens; ++t) {
        std::vector<double> of_token(n);
        for (int64_t e = 0; e < n; ++e) of_token[e] = At(d_o, row + t, first + e);
        LinearTokenBackward(x, t, of_token, dx);
      }
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t e = 0; e < n; ++e) {
          all(row + t, first + e) = dx.q(t, e) * FeatureSlope(x.q(t, e));
          all(row + t, d + first + e) = dx.k(t, e) * FeatureSlope(x.k(t, e));
          all(row + t, 2 * d + first + e) = dx.v(t, e);
        }
      }
    }
  }
  Put(all, dqkv);
}

}  // namespace hippodrome::reference
