#include "tests/reference/training/long_conv_backward.h"

#include <algorithm>

namespace hippodrome::reference {

void LongConvKernelGradients::Reach(int64_t channels, int64_t length) {
  k.resize(std::max(k.size(), static_cast<size_t>(channels)));
  for (auto& kernel : k) kernel.resize(std::max(kernel.size(), static_cast<size_t>(length)));
  d.resize(k.size());
}

std::vector<double> LongConvKernelGradients::Kernel(int64_t head, int64_t heads) const {
  std::vector<double> sum;
  const auto share = static_cast<int64_t>(k.size()) / heads;
  for (int64_t c = head * share; c < (head + 1) * share; ++c) {
    sum.resize(k[c].size());
    for (size_t l = 0; l < sum.size(); ++l) sum[l] += k[c][l];
  }
  return sum;
}

double LongConvKernelGradients::Skip(int64_t head, int64_t heads) const {
  double sum = 0;
  const auto share = static_cast<int64_t>(d.size()) / heads;
  for (int64_t c = head * share; c < (head + 1) * share; ++c) sum += d[c];
  return sum;
}

Matrix ConvolutionBackward(Tensor response, Tensor u, Direction direction, Tensor dy,
                           LongConvKernelGradients& sums) {
  const int64_t tokens = u.rows;
  const auto place = [&](int64_t t) {
    return direction == Direction::kForward ? t : tokens - 1 - t;
  };
  sums.Reach(u.cols, tokens);
  Matrix du(tokens, u.cols);
  for (int64_t c = 0; c < u.cols; ++c) {
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t l = 0; t + l < tokens; ++l) {  // y_{t+l} has K[l] u_t
        du(place(t), c) += At(response, l, c) * At(dy, place(t + l), c);
        sums.k[c][l] += At(dy, place(t + l), c) * At(u, place(t), c);
      }
      sums.d[c] += At(dy, t, c) * At(u, t, c);
    }
  }
  return du;
}

}  // namespace hippodrome::reference
