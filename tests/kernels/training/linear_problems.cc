// LinearBackward and LinearCrossEntropy.
#include <cmath>

#include "tests/kernels/training/problem.h"

namespace hippodrome {
namespace {

using Activation = Epilogue::Activation;

struct LinearShape {
  int64_t rows, in, out;
  Activation activation = Activation::kNone;
  bool bias = false;
  bool gate = false;
  bool gate_in_place = false;  // dgate replaces dy
  DType dtype = DType::kF32;
  bool large = false;
};

// Packed from two parts where there are two rows.
std::unique_ptr<LinearWeights> Pack(TrainingBackend& backend, Tensor w, DType dtype) {
  auto weights = backend.NewTrainedLinear(w.rows, w.cols, dtype);
  const int64_t first = (w.rows + 1) / 2;
  const Tensor parts[] = {w.Rows(0, first), w.Rows(first, w.rows - first)};
  backend.PackTrainedLinear(std::span(parts, w.rows > 1 ? 2 : 1), *weights);
  return weights;
}

std::vector<Operand> LinearOperands(int64_t rows, int64_t in, int64_t out) {
  const double scale = 1 / std::sqrt(static_cast<double>(in));
  return {RandomOperand("x", rows, in, 1),
          RandomOperand("w", out, in, 2, -2 * scale, 2 * scale, GradientRule::kAdded)};
}

TrainingProblem LinearProblem(const std::string& name, const LinearShape& s) {
  TrainingProblem p;
  p.name = "Linear" + name;
  p.rows = s.rows;
  p.cols = s.out;
  p.terms = static_cast<double>(std::max({s.rows, s.in, s.out}));
  p.large = s.large;
  p.bf16 = s.dtype == DType::kBF16;
  p.operands = LinearOperands(s.rows, s.in, s.out);
  if (s.bias) p.operands.push_back(RandomOperand("bias", 1, s.out, 3, -1, 1, GradientRule::kAdded));
  if (s.gate) p.operands.push_back(RandomOperand("gate", s.rows, s.out, 4));
  const auto epilogue = [s](Tensors x) {
    Epilogue e;
    e.activation = s.activation;
    if (s.bias) e.bias = x[2];
    if (s.gate) e.gate = x.back();
    return e;
  };
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    backend.Linear(x[0], *Pack(backend, x[1], s.dtype), epilogue(x), y);
  };
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    LinearGradients gradients = {.x = dx[0], .weights = dx[1].tensor};
    if (s.bias) gradients.bias = dx[2].tensor;
    if (s.gate) gradients.gate = dx.back();
    const bool in_place = s.gate_in_place && !dx.back().add && dx.back().tensor.data != nullptr;
    if (in_place) gradients.gate.tensor = dy;
    backend.LinearBackward(x[0], *Pack(backend, x[1], s.dtype), epilogue(x), dy, gradients);
    if (in_place) backend.Copy(dy, dx.back().tensor);
  };
  return p;
}

TrainingProblem CrossEntropyProblem(const std::string& name, const LinearShape& s) {
  TrainingProblem p;
  p.name = "CrossEntropy" + name;
  p.rows = 1;
  p.cols = s.rows;
  p.terms = static_cast<double>(std::max({s.rows, s.in, s.out}));
  p.large = s.large;
  p.dy = 0.125f;  // the scale of the losses
  p.bf16 = s.dtype == DType::kBF16;
  p.operands = LinearOperands(s.rows, s.in, s.out);
  if (s.bias) p.operands.push_back(RandomOperand("bias", 1, s.out, 3, -1, 1, GradientRule::kAdded));
  std::vector<int32_t> labels;
  for (int64_t r = 0; r < s.rows; ++r) {
    labels.push_back(r % 5 == 3 ? -1 : static_cast<int32_t>(r * 7919 % s.out));
  }
  const auto run = [=](TrainingBackend& backend, Tensors x, Tensor losses,
                       const LinearGradients* gradients) {
    const OwnedTensor label_row = UploadIndices(backend, 1, labels);
    backend.LinearCrossEntropy(x[0], *Pack(backend, x[1], s.dtype), s.bias ? x[2] : Tensor(),
                               label_row, 0.125, losses, gradients);
    backend.Wait();
  };
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) { run(backend, x, y, nullptr); };
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    const OwnedTensor losses = backend.NewTensor(1, dy.cols);
    LinearGradients gradients = {.x = dx[0], .weights = dx[1].tensor};
    if (s.bias) gradients.bias = dx[2].tensor;
    run(backend, x, losses, &gradients);
  };
  return p;
}

}  // namespace

std::vector<TrainingProblem> LinearProblems() {
  return {
      LinearProblem("One", {1, 1, 1}),
      LinearProblem("Bias", {3, 5, 4, Activation::kNone, true}),
      LinearProblem("Gate", {4, 3, 7, Activation::kNone, false, true}),
      LinearProblem("GeluTanh", {5, 7, 9, Activation::kGeluTanh, true, true}),
      LinearProblem("GeluErf", {5, 7, 9, Activation::kGeluErf, true}),
      LinearProblem("Tanh", {2, 9, 3, Activation::kTanh, true, true, true}),
      LinearProblem("Relu", {3, 4, 5, Activation::kRelu, true, true}),
      LinearProblem("Silu", {7, 6, 5, Activation::kSilu, false, true, true}),
      LinearProblem("LargeF32",
                    {131, 70, 133, Activation::kGeluTanh, true, true, true, DType::kF32, true}),
      LinearProblem("LargePlain",
                    {700, 65, 33, Activation::kNone, true, false, false, DType::kF32, true}),
      LinearProblem("LargeBF16",
                    {131, 70, 133, Activation::kGeluErf, true, true, false, DType::kBF16, true}),
      CrossEntropyProblem("One", {1, 3, 4}),
      CrossEntropyProblem("Bias", {6, 5, 11, Activation::kNone, true}),
      CrossEntropyProblem("Plain", {9, 4, 7}),
      CrossEntropyProblem("LargeF32",
                          {150, 33, 517, Activation::kNone, true, false, false, DType::kF32, true}),
      CrossEntropyProblem(
          "LargeBF16", {150, 33, 517, Activation::kNone, false, false, false, DType::kBF16, true}),
  };
}

}  // namespace hippodrome
