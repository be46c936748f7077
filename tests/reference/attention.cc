#include "tests/reference/attention.h"

#include <algorithm>
#include <cmath>

#include "tests/reference/linear.h"
#include "tests/reference/matrix.h"

namespace hippodrome::reference {

void Rotate(const AttentionShape& shape, Tensor inv_freq, int64_t position, double* x) {
  const int64_t half = shape.rotary_dim / 2;
  for (int64_t j = 0; j < half; ++j) {
    const double angle = static_cast<double>(position) * At(inv_freq, 0, j);
    const double x1 = x[j];
    const double x2 = x[half + j];
    x[j] = x1 * std::cos(angle) - x2 * std::sin(angle);
    x[half + j] = x1 * std::sin(angle) + x2 * std::cos(angle);
  }
}

void Softmax(std::vector<double>& score) {
  const double largest = *std::max_element(score.begin(), score.end());
  double sum = 0;
  for (double& p : score) sum += p = std::exp(p - largest);
  for (double& p : score) p /= sum;
}

void AttendOne(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, AttentionPages& pages,
               Tensor page_table, int64_t table_start, int64_t position, Tensor o) {
  const int64_t first = shape.FirstSeen(position);
  const auto row = [&](int64_t s) {
    const int64_t page = IndexAt(page_table, 0, (s - table_start) / pages.tokens_per_page);
    return (page * pages.tokens_per_page + (s - table_start) % pages.tokens_per_page) * pages.d;
  };
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t at = h * shape.head_dim;
    std::vector<double> q(shape.head_dim);
    double* k_new = &pages.k[row(position) + at];
    for (int64_t e = 0; e < shape.head_dim; ++e) {
      q[e] = At(qkv, 0, at + e);
      k_new[e] = At(qkv, 0, pages.d + at + e);
      pages.v[row(position) + at + e] = RoundTo(At(qkv, 0, 2 * pages.d + at + e), pages.dtype);
    }
    Rotate(shape, inv_freq, position, q.data());
    Rotate(shape, inv_freq, position, k_new);
    for (int64_t e = 0; e < shape.head_dim; ++e) k_new[e] = RoundTo(k_new[e], pages.dtype);

    std::vector<double> score(position + 1 - first);
    for (int64_t s = first; s <= position; ++s) {
      double& sum = score[s - first];
      for (int64_t e = 0; e < shape.head_dim; ++e) sum += q[e] * pages.k[row(s) + at + e];
      sum /= std::sqrt(static_cast<double>(shape.head_dim));
    }
    Softmax(score);
    for (int64_t e = 0; e < shape.head_dim; ++e) {
      double mean = 0;
      for (int64_t s = first; s <= position; ++s) {
        mean += score[s - first] * pages.v[row(s) + at + e];
      }
      At(o, 0, at + e) = mean;
    }
  }
}

void AttendAll(const AttentionShape& shape, Tensor qkv, Tensor mask, Tensor o) {
  const int64_t d = shape.heads * shape.head_dim;
  std::vector<int64_t> seen;
  for (int64_t s = 0; s < mask.cols; ++s) {
    if (IndexAt(mask, 0, s) != 0) seen.push_back(s);
  }
  if (seen.empty()) return Zero(o);
  for (int64_t t = 0; t < qkv.rows; ++t) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t at = h * shape.head_dim;
      std::vector<double> score(seen.size());
      for (size_t i = 0; i < seen.size(); ++i) {
        for (int64_t e = 0; e < shape.head_dim; ++e) {
          score[i] += At(qkv, t, at + e) * At(qkv, seen[i], d + at + e);
        }
        score[i] /= std::sqrt(static_cast<double>(shape.head_dim));
      }
      Softmax(score);
      for (int64_t e = 0; e < shape.head_dim; ++e) {
        double mean = 0;
        for (size_t i = 0; i < seen.size(); ++i)
          mean += score[i] * At(qkv, seen[i], 2 * d + at + e);
        At(o, t, at + e) = mean;
      }
    }
  }
}

}  // namespace hippodrome::reference
