// LongConvBackward and TakeLongConvGradients.
#include <cmath>

#include "tests/kernels/training/problem.h"

namespace hippodrome {
namespace {

struct ConvShape {
  int64_t sequences, tokens, channels;
  Direction direction = Direction::kForward;
  bool large = false;
};

Operand Parameter(std::string name, int64_t rows, int64_t cols, uint32_t seed, double low,
                  double high) {
  return RandomOperand(std::move(name), rows, cols, seed, low, high, GradientRule::kTaken);
}

struct DiagonalShape {
  int64_t heads, modes;
  int64_t n_ssm = 0;
  StateMatrixForm form = StateMatrixForm::kClamped;
  double scale = 1;
  bool log_step = true;
};

// The parameters of a convolution from the tensors x[1], x[2], ..., and their gradients.
struct Parameters {
  Parameters(TrainingBackend& backend, Tensors x) {
    for (size_t i = 1; i < x.size(); ++i) values.push_back(Download(backend, x[i]));
    gradients = values;
  }
  std::vector<std::vector<float>> values, gradients;
  LongConvParameters all;
  LongConvParameterGradients spans;
};

using MakeParameters = std::function<Parameters(TrainingBackend&, Tensors)>;

TrainingProblem ConvProblem(const std::string& name, const ConvShape& s,
                            std::vector<Operand> parameters, const MakeParameters& make) {
  TrainingProblem p;
  p.name = "LongConv" + name;
  p.operands = std::move(parameters);
  p.operands.insert(p.operands.begin(), RandomOperand("u", s.sequences * s.tokens, s.channels, 1));
  p.rows = s.sequences * s.tokens;
  p.cols = s.channels;
  p.terms = static_cast<double>(p.rows);
  p.large = s.large;
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    const auto weights = backend.PrepareLongConv(make(backend, x).all, s.tokens + 2, DType::kF32);
    backend.LongConv(*weights, x[0], s.sequences, s.direction, y);
    backend.Wait();
  };
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    Parameters parameters = make(backend, x);
    const auto weights = backend.PrepareLongConv(parameters.all, s.tokens + 2, DType::kF32);
    const auto sums = backend.NewLongConvGradients(*weights);
    backend.LongConvBackward(*weights, x[0], s.sequences, s.direction, dy, dx[0], *sums);
    backend.TakeLongConvGradients(*weights, parameters.all, *sums, parameters.spans);
    for (size_t i = 1; i < dx.size(); ++i) {
      if (dx[i].tensor.data != nullptr) backend.Upload(parameters.gradients[i - 1], dx[i].tensor);
    }
  };
  return p;
}

TrainingProblem DiagonalProblem(const std::string& name, const ConvShape& s,
                                const DiagonalShape& ssm) {
  const int64_t rows = ssm.n_ssm == 0 ? ssm.heads : ssm.n_ssm;
  // Clamped: on both sides of -1e-4; with steps of 1, shorter than the others.
  const bool clamped = ssm.form == StateMatrixForm::kClamped;
  const bool exp_both = ssm.form == StateMatrixForm::kExpBoth;
  std::vector<Operand> operands = {
      Parameter("a_real", rows, ssm.modes, 2, -1, clamped ? 0.2 : 0.5),
      Parameter("a_imag", rows, ssm.modes, 3, exp_both ? -1 : -4, exp_both ? 1 : 4),
      Parameter("c", ssm.heads, 2 * ssm.modes, 4, -1, 1), Parameter("d", 1, ssm.heads, 5, -1, 1)};
  if (ssm.log_step) operands.push_back(Parameter("log_step", 1, ssm.heads, 6, -4, -0.5));
  const auto make = [=](TrainingBackend& backend, Tensors x) {
    Parameters p(backend, x);
    DiagonalSsmParameters shared = {.channels = s.channels,
                                    .heads = ssm.heads,
                                    .modes = ssm.modes,
                                    .n_ssm = ssm.n_ssm,
                                    .form = ssm.form,
                                    .scale = ssm.scale,
                                    .a_real = p.values[0],
                                    .a_imag = p.values[1],
                                    .c = p.values[2],
                                    .d = p.values[3]};
    p.spans = {.a_real = p.gradients[0],
               .a_imag = p.gradients[1],
               .c = p.gradients[2],
               .d = p.gradients[3]};
    if (ssm.log_step) shared.log_step = p.values[4];
    if (ssm.log_step) p.spans.log_step = p.gradients[4];
    p.all = shared;
    return p;
  };
  return ConvProblem(name, s, std::move(operands), make);
}

TrainingProblem NplrProblem(const std::string& name, const ConvShape& s, int64_t modes,
                            int64_t n_ssm, int64_t c_length) {
  const int64_t rows = n_ssm == 0 ? s.channels : n_ssm;
  std::vector<Operand> operands = {Parameter("a_real", rows, modes, 2, -1, 0.5),
                                   Parameter("a_imag", rows, modes, 3, 0.2, 6),
                                   Parameter("b", rows, 2 * modes, 4, -1, 1),
                                   Parameter("p", rows, 2 * modes, 5, -1, 1),
                                   Parameter("c", s.channels, 2 * modes, 6, -1, 1),
                                   Parameter("log_step", 1, s.channels, 7, -3, -1),
                                   Parameter("d", 1, s.channels, 8, -1, 1)};
  const auto make = [=](TrainingBackend& backend, Tensors x) {
    Parameters p(backend, x);
    const auto& v = p.values;
    auto& g = p.gradients;
    p.all = NplrParameters{.channels = s.channels,
                           .modes = modes,
                           .n_ssm = n_ssm,
                           .c_length = c_length,
                           .a_real = v[0],
                           .a_imag = v[1],
                           .b = v[2],
                           .p = v[3],
                           .c = v[4],
                           .log_step = v[5],
                           .d = v[6]};
    p.spans = {.a_real = g[0],
               .a_imag = g[1],
               .c = g[4],
               .log_step = g[5],
               .d = g[6],
               .b = g[2],
               .p = g[3]};
    return p;
  };
  return ConvProblem(name, s, std::move(operands), make);
}

}  // namespace

std::vector<TrainingProblem> LongConvProblems() {
  constexpr auto kBackward = Direction::kBackward;
  constexpr auto kForward = Direction::kForward;
  constexpr auto kExpReal = StateMatrixForm::kExpReal;
  constexpr auto kExpBoth = StateMatrixForm::kExpBoth;
  return {
      DiagonalProblem("OneToken", {1, 1, 3}, {1, 2}),
      DiagonalProblem("Bigs", {2, 9, 3}, {1, 4}),
      DiagonalProblem("BigsBackward", {3, 7, 4, kBackward}, {2, 3}),
      DiagonalProblem("S4D", {2, 8, 4}, {4, 3, 1, kExpReal, 2}),
      DiagonalProblem("S4DBackward", {1, 8, 4, kBackward}, {4, 2, 2, kExpReal, 2}),
      DiagonalProblem("Gss", {2, 9, 3}, {3, 5, 1, kExpBoth, 1, false}),
      DiagonalProblem("GssBackward", {2, 9, 3, kBackward}, {3, 5, 1, kExpBoth, 1, false}),
      NplrProblem("S4", {2, 7, 2}, 3, 0, 0),
      NplrProblem("S4Shared", {1, 9, 4}, 2, 2, 0),
      NplrProblem("S4Folded", {1, 6, 2}, 2, 1, 8),
      NplrProblem("S4Backward", {2, 5, 2, kBackward}, 2, 1, 16),
      DiagonalProblem("LargeBigs", {3, 133, 40, kForward, true}, {1, 16}),
      DiagonalProblem("LargeBigsBackward", {2, 600, 24, kBackward, true}, {2, 16}),
      DiagonalProblem("LargeS4D", {4, 31, 37, kForward, true}, {37, 8, 1, kExpReal, 2}),
      NplrProblem("LargeS4", {2, 65, 12, kForward, true}, 8, 1, 128),
  };
}

}  // namespace hippodrome
