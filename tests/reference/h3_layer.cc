#include "tests/reference/h3_layer.h"

#include <algorithm>

#include "tests/reference/linear.h"
#include "tests/reference/matrix.h"

namespace hippodrome::reference {

H3Layer::H3Layer(const H3Parameters& p)
    : d_model_(p.d_model),
      head_dim_(p.head_dim),
      d_state_(p.d_state),
      output_order_(p.output_order) {
  for (int64_t c = 0; c < p.d_model; ++c) shift_.push_back(Shift(p, c));
  for (int64_t h = 0; h < heads(); ++h) diagonal_.push_back(Discretize(p, h));
}

H3SlotState H3Layer::NewState() const {
  return {std::vector(d_model_, std::vector<double>(d_state_)),
          std::vector(d_model_, std::vector<double>(d_state_)),
          std::vector(d_model_ * head_dim_, std::vector<Complex>(d_state_ / 2))};
}

void H3Layer::Step(Tensor qkv, DType type, H3SlotState& state, Tensor o) const {
  const Tensor q = qkv.Cols(0, d_model_);
  const Tensor k = qkv.Cols(d_model_, d_model_);
  const Tensor v = qkv.Cols(2 * d_model_, d_model_);
  std::vector<double> ks(d_model_);  // ks = SSM_shift(k)
  for (int64_t c = 0; c < d_model_; ++c) {
    const double input = RoundTo(At(k, 0, c), type);
    ks[c] = shift_[c].Step(input, state.shift[c]);
    std::rotate(state.inputs[c].begin(), state.inputs[c].begin() + 1, state.inputs[c].end());
    state.inputs[c].back() = input;
  }
  for (int64_t h = 0; h < heads(); ++h) {
    for (int64_t d2 = 0; d2 < head_dim_; ++d2) {
      double sum = 0;  // o[d2] = sum_d1 q[d1] SSM_diag(ks[d1] v[d2])
      for (int64_t d1 = 0; d1 < head_dim_; ++d1) {
        const double kv = ks[h * head_dim_ + d1] * At(v, 0, h * head_dim_ + d2);
        auto& x = state.diagonal[(h * head_dim_ + d1) * head_dim_ + d2];
        sum += At(q, 0, h * head_dim_ + d1) * diagonal_[h].Step(kv, x);
      }
      At(o, 0, OutputChannel(h, d2)) = sum;
    }
  }
}

int64_t H3LayerState::bytes_per_slot() const {
  const int64_t d = static_cast<int64_t>(zero.shift.size());
  const int64_t rows = static_cast<int64_t>(zero.diagonal.size());
  return d * static_cast<int64_t>(zero.shift[0].size() * sizeof(double)) +
         rows * static_cast<int64_t>(zero.diagonal[0].size() * sizeof(Complex));
}

void H3LayerState::Step(int64_t index, int64_t position, bool transforms, Tensor qkv, Tensor o) {
  layer.Step(qkv, type, slot[index], o);
  if ((position + 1) % kCaptureTokens == 0 && !transforms) RoundModes(slot[index]);
}

void H3LayerState::RoundModes(H3SlotState& state) const {
  if (type == DType::kF32) return;
  ForEachMode([&](int64_t row, int64_t n, Complex db) {
    if (db == 0.0) return;
    const Complex x = state.diagonal[row][n] / db;
    state.diagonal[row][n] = Complex(RoundTo(x.real(), type), RoundTo(x.imag(), type)) * db;
  });
}

void H3LayerState::Export(int64_t index, std::span<const std::span<float>> arrays) const {
  const H3SlotState& state = slot[index];
  float* input = arrays[0].data();
  for (const auto& inputs : state.inputs) {
    for (const double k : inputs) *input++ = static_cast<float>(k);
  }
  float* mode = arrays[1].data();
  ForEachMode([&](int64_t row, int64_t n, Complex db) {
    // Where dB is zero, x is zero, and counts for nothing.
    const Complex x = db == 0.0 ? 0.0 : state.diagonal[row][n] / db;
    *mode++ = static_cast<float>(x.real());
    *mode++ = static_cast<float>(x.imag());
  });
}

void H3LayerState::Import(int64_t index, std::span<const std::span<const float>> arrays) {
  H3SlotState& state = slot[index];
  state = zero;
  const float* input = arrays[0].data();
  for (int64_t c = 0; c < layer.d(); ++c) {
    for (double& k : state.inputs[c]) {
      k = RoundTo(*input++, type);
      layer.shift(c).Step(k, state.shift[c]);
    }
  }
  const float* mode = arrays[1].data();
  ForEachMode([&](int64_t row, int64_t n, Complex db) {
    state.diagonal[row][n] = Complex(mode[0], mode[1]) * db;
    mode += 2;
  });
  RoundModes(state);
  const int64_t pairs = layer.head_dim() * layer.head_dim();
  const int64_t pending = std::ssize(arrays[2]) / (pairs * layer.heads());
  for (int64_t i = 0; i < pending * pairs * layer.heads(); ++i) {
    const int64_t head = i % layer.heads();
    const int64_t pair = i / layer.heads() % pairs;
    layer.diagonal(head).Step(arrays[2][i], state.diagonal[head * pairs + pair]);
  }
}

void H3LayerState::ForEachMode(
    const std::function<void(int64_t row, int64_t n, Complex db)>& body) const {
  const int64_t head_dim = layer.head_dim();
  for (int64_t pair = 0; pair < head_dim * head_dim; ++pair) {
    for (int64_t h = 0; h < layer.heads(); ++h) {
      const std::vector<Complex>& db = layer.diagonal(h).db;
      for (int64_t n = 0; n < std::ssize(db); ++n) body(h * head_dim * head_dim + pair, n, db[n]);
    }
  }
}

}  // namespace hippodrome::reference
