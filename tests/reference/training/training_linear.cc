// The training operations of the reference on matrices.
#include <algorithm>
#include <cmath>

#include "tests/reference/activation.h"
#include "tests/reference/linear.h"
#include "tests/reference/training/gradient.h"
#include "tests/reference/training/training_reference.h"

namespace hippodrome::reference {
namespace {

// The gradients of z = x W^T + bias.
void ProductBackward(Tensor x, const LinearMatrix& w, const Matrix& dz,
                     const LinearGradients& gradients) {
  const auto rounded = [&](double value) { return RoundTo(value, w.dtype); };
  Matrix dx(x.rows, x.cols);
  for (int64_t r = 0; r < dz.rows; ++r) {
    for (int64_t c = 0; c < dz.cols; ++c) {
      for (int64_t k = 0; k < x.cols; ++k) {
        dx(r, k) += rounded(dz(r, c)) * w.w(c, k);
        AddTo(gradients.weights, c, k, rounded(dz(r, c)) * rounded(At(x, r, k)));
      }
      AddTo(gradients.bias, 0, c, dz(r, c));
    }
  }
  Put(dx, gradients.x);
}

// log sum_c exp(z_c) of one row.
double LogSumExp(const Matrix& z, int64_t row) {
  double largest = z(row, 0);
  for (int64_t c = 1; c < z.cols; ++c) largest = std::max(largest, z(row, c));
  double sum = 0;
  for (int64_t c = 0; c < z.cols; ++c) sum += std::exp(z(row, c) - largest);
  return largest + std::log(sum);
}

}  // namespace

std::unique_ptr<LinearWeights> TrainingReference::NewTrainedLinear(int64_t out, int64_t in,
                                                                   DType dtype) {
  return std::make_unique<LinearMatrix>(Matrix(out, in), dtype);
}

void TrainingReference::PackTrainedLinear(std::span<const Tensor> parts, LinearWeights& w) {
  auto& to = static_cast<LinearMatrix&>(w);
  int64_t row = 0;
  for (const Tensor& part : parts) {
    ForEach(part,
            [&](int64_t r, int64_t c) { to.w(row + r, c) = RoundTo(At(part, r, c), to.dtype); });
    row += part.rows;
  }
  assert(row == to.out());
}

void TrainingReference::LinearBackward(Tensor x, const LinearWeights& w, const Epilogue& epilogue,
                                       Tensor dy, const LinearGradients& gradients) {
  const auto& weights = static_cast<const LinearMatrix&>(w);
  Matrix dz(dy.rows, dy.cols);
  Matrix dgate(dy.rows, dy.cols);
  ForEach(dy, [&](int64_t r, int64_t c) {
    const double z = LinearAt(x, weights, epilogue.bias, r, c);
    const double gate = epilogue.gate.data == nullptr ? 1 : At(epilogue.gate, r, c);
    dz(r, c) = At(dy, r, c) * gate * ActivationSlope(z, epilogue.activation);
    dgate(r, c) = At(dy, r, c) * reference::Activate(z, epilogue.activation);
  });
  Put(dgate, gradients.gate);
  ProductBackward(x, weights, dz, gradients);
}

void TrainingReference::LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias,
                                           Tensor labels, double scale, Tensor losses,
                                           const LinearGradients* gradients) {
  const auto& weights = static_cast<const LinearMatrix&>(w);
  Matrix z(x.rows, weights.out());
  Matrix dz(x.rows, weights.out());
  for (int64_t r = 0; r < z.rows; ++r) {
    const int32_t label = IndexAt(labels, 0, r);
    At(losses, 0, r) = 0;
    if (label < 0) continue;
    for (int64_t c = 0; c < z.cols; ++c) z(r, c) = LinearAt(x, weights, bias, r, c);
    const double log_sum = LogSumExp(z, r);
    At(losses, 0, r) = log_sum - z(r, label);
    for (int64_t c = 0; c < z.cols; ++c) {
      dz(r, c) = scale * (std::exp(z(r, c) - log_sum) - (c == label ? 1 : 0));
    }
  }
  if (gradients != nullptr) ProductBackward(x, weights, dz, *gradients);
}

}  // namespace hippodrome::reference
