// H3ConvolutionBackward and TakeH3Gradients.
#include <cmath>

#include "tests/kernels/training/problem.h"

namespace hippodrome {
namespace {

struct H3Shape {
  int64_t sequences, tokens, d_model;
  int64_t head_dim = 1;
  int64_t d_state = 6;
  int64_t n_ssm = 1;
  Discretization rule = Discretization::kBilinear;
  H3OutputOrder order = H3OutputOrder::kHeadD2;
  bool large = false;
};

// qkv, then the parameters in the order of H3ParameterGradients.
std::vector<Operand> H3Operands(const H3Shape& s) {
  const int64_t heads = s.d_model / s.head_dim;
  const int64_t modes = s.d_state / 2;
  const auto parameter = [](std::string name, int64_t rows, int64_t cols, uint32_t seed, double low,
                            double high) {
    return RandomOperand(std::move(name), rows, cols, seed, low, high, GradientRule::kTaken);
  };
  return {RandomOperand("qkv", s.sequences * s.tokens, 3 * s.d_model, 1),
          parameter("shift_b", s.d_model, s.d_state, 2, -1, 1),
          parameter("shift_c", s.d_model, s.d_state, 3, -0.5, 0.5),
          parameter("shift_d", 1, s.d_model, 4, -1, 1),
          parameter("d", 1, heads, 5, -1, 1),
          parameter("log_dt", 1, heads, 6, -5, -1.5),
          parameter("inv_a_real", s.n_ssm, modes, 7, -1, 0.5),
          parameter("a_imag", s.n_ssm, modes, 8, -1, 8),
          parameter("b", s.n_ssm, 2 * modes, 9, -1, 1),
          parameter("c", heads, 2 * modes, 10, -1, 1)};
}

// The parameters of a layer, from tensors.
class Layer {
 public:
  Layer(const H3Shape& s, TrainingBackend& backend, Tensors x) {
    for (size_t i = 1; i < x.size(); ++i) values_.push_back(Download(backend, x[i]));
    p_ = {.d_model = s.d_model,
          .head_dim = s.head_dim,
          .d_state = s.d_state,
          .n_ssm = s.n_ssm,
          .discretization = s.rule,
          .output_order = s.order,
          .shift_b = values_[0],
          .shift_c = values_[1],
          .shift_d = values_[2],
          .d = values_[3],
          .log_dt = values_[4],
          .inv_a_real = values_[5],
          .a_imag = values_[6],
          .b = values_[7],
          .c = values_[8]};
  }
  const H3Parameters& parameters() const { return p_; }

  // Where gradients of all parameters go; then to tensors.
  H3ParameterGradients gradients() {
    gradients_ = values_;
    auto& g = gradients_;
    return {g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8]};
  }
  void UploadGradients(TrainingBackend& backend, std::span<const Gradient> dx) const {
    for (size_t i = 1; i < dx.size(); ++i) {
      if (dx[i].tensor.data != nullptr) backend.Upload(gradients_[i - 1], dx[i].tensor);
    }
  }

 private:
  std::vector<std::vector<float>> values_, gradients_;
  H3Parameters p_;
};

TrainingProblem H3Problem(const std::string& name, const H3Shape& s) {
  TrainingProblem p;
  p.name = "H3" + name;
  p.operands = H3Operands(s);
  p.rows = s.sequences * s.tokens;
  p.cols = s.d_model;
  p.terms = static_cast<double>(p.rows * s.head_dim);
  p.large = s.large;
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    const Layer layer(s, backend, x);
    const auto weights =
        backend.PrepareH3Convolution(layer.parameters(), s.tokens + 3, DType::kF32);
    backend.H3Convolution(*weights, x[0], s.sequences, y);
    backend.Wait();
  };
  // The sequences one after another, where there are several: gradients of kernels are sums.
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    Layer layer(s, backend, x);
    const auto weights =
        backend.PrepareH3Convolution(layer.parameters(), s.tokens + 3, DType::kF32);
    const auto sums = backend.NewH3Gradients(*weights);
    const int64_t first = s.sequences / 2 * s.tokens;
    for (const auto& [begin, rows] : {std::pair(int64_t{0}, first), {first, dy.rows - first}}) {
      if (rows == 0) continue;
      Gradient dqkv = dx[0];
      if (dqkv.tensor.data != nullptr) dqkv.tensor = dqkv.tensor.Rows(begin, rows);
      backend.H3ConvolutionBackward(*weights, x[0].Rows(begin, rows), rows / s.tokens,
                                    dy.Rows(begin, rows), dqkv, *sums);
    }
    const H3ParameterGradients gradients = layer.gradients();
    backend.TakeH3Gradients(*weights, layer.parameters(), *sums, gradients);
    layer.UploadGradients(backend, dx);
  };
  return p;
}

}  // namespace

std::vector<TrainingProblem> H3Problems() {
  constexpr auto kZoh = Discretization::kZoh;
  constexpr auto kBilinear = Discretization::kBilinear;
  constexpr auto kD2Head = H3OutputOrder::kD2Head;
  constexpr auto kHeadD2 = H3OutputOrder::kHeadD2;
  return {
      H3Problem("OneToken", {1, 1, 2}),
      H3Problem("ShorterThanTaps", {2, 3, 4, 1, 8, 2}),
      H3Problem("Bilinear", {2, 9, 4, 1, 6, 2}),
      H3Problem("Zoh", {3, 9, 4, 1, 4, 4, kZoh}),
      H3Problem("TwoDimensions", {1, 7, 8, 2, 4, 2}),
      H3Problem("TwoDimensionsZohD2Head", {2, 5, 6, 2, 4, 1, kZoh, kD2Head}),
      H3Problem("ThreeDimensionsD2Head", {1, 5, 6, 3, 2, 2, kBilinear, kD2Head}),
      H3Problem("LargeShort", {5, 31, 37, 1, 64, 37, kBilinear, kHeadD2, true}),
      H3Problem("LargeZoh", {2, 70, 16, 1, 16, 4, kZoh, kHeadD2, true}),
      H3Problem("LargeLong", {2, 600, 16, 1, 64, 1, kBilinear, kHeadD2, true}),
      H3Problem("LargeDimensions", {2, 130, 16, 4, 8, 4, kBilinear, kD2Head, true}),
  };
}

}  // namespace hippodrome
