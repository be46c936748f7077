// The training operations of the reference on rows.
#include <cmath>

#include "kernels/dropout_bits.h"
#include "tests/reference/activation.h"
#include "tests/reference/training/gradient.h"
#include "tests/reference/training/training_reference.h"

namespace hippodrome::reference {

// With xh = (x - mean) / sqrt(var + eps) and g = gamma dy:
//   dx = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps)
void TrainingReference::LayerNormBackward(Tensor x, Tensor gamma, double epsilon, Tensor dy,
                                          Gradient dx, Tensor dgamma, Tensor dbeta) {
  const auto d = static_cast<double>(x.cols);
  Matrix result(x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    double mean = 0;
    double variance = 0;
    for (int64_t c = 0; c < x.cols; ++c) mean += At(x, r, c) / d;
    for (int64_t c = 0; c < x.cols; ++c) variance += std::pow(At(x, r, c) - mean, 2) / d;
    const double scale = 1 / std::sqrt(variance + epsilon);
    const auto xh = [&](int64_t c) { return (At(x, r, c) - mean) * scale; };
    const auto g = [&](int64_t c) { return At(gamma, 0, c) * At(dy, r, c); };

    double mean_g = 0;
    double mean_gxh = 0;
    for (int64_t c = 0; c < x.cols; ++c) {
      mean_g += g(c) / d;
      mean_gxh += g(c) * xh(c) / d;
      AddTo(dgamma, 0, c, At(dy, r, c) * xh(c));
      AddTo(dbeta, 0, c, At(dy, r, c));
    }
    for (int64_t c = 0; c < x.cols; ++c) {
      result(r, c) = scale * (g(c) - mean_g - xh(c) * mean_gxh);
    }
  }
  Put(result, dx);
}

void TrainingReference::ActivateBackward(Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                                         Gradient dgate) {
  Matrix result(x.rows, x.cols);
  Matrix of_gate(x.rows, x.cols);
  ForEach(x, [&](int64_t r, int64_t c) {
    const double gate = epilogue.gate.data == nullptr ? 1 : At(epilogue.gate, r, c);
    result(r, c) = At(dy, r, c) * gate * ActivationSlope(At(x, r, c), epilogue.activation);
    of_gate(r, c) = At(dy, r, c) * reference::Activate(At(x, r, c), epilogue.activation);
  });
  Put(result, dx);
  Put(of_gate, dgate);
}

void TrainingReference::ScatterRows(Tensor dy, Tensor indices, Tensor dtable) {
  ForEach(dy, [&](int64_t r, int64_t c) {
    const int32_t row = IndexAt(indices, 0, r);
    if (row >= 0) At(dtable, row, c) += At(dy, r, c);
  });
}

void TrainingReference::MeanPoolBackward(Tensor mask, Tensor dy, Gradient dx) {
  Matrix result(mask.rows * mask.cols, dy.cols);
  for (int64_t b = 0; b < mask.rows; ++b) {
    double count = 0;
    for (int64_t t = 0; t < mask.cols; ++t) count += IndexAt(mask, b, t);
    for (int64_t t = 0; t < mask.cols; ++t) {
      if (IndexAt(mask, b, t) == 0) continue;
      for (int64_t c = 0; c < dy.cols; ++c) result(b * mask.cols + t, c) = At(dy, b, c) / count;
    }
  }
  Put(result, dx);
}

void TrainingReference::Drop(double p, uint64_t seed, Tensor x) {
  ForEach(x, [&](int64_t r, int64_t c) {
    const uint32_t bits = DropoutBits(DropoutRowOf(seed, r), static_cast<uint32_t>(c));
    At(x, r, c) = bits < DropoutThreshold(p) ? 0 : At(x, r, c) / (1 - p);
  });
}

}  // namespace hippodrome::reference
