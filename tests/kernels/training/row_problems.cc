// LayerNormBackward, ActivateBackward, ScatterRows, MeanPoolBackward and Drop.
#include "tests/kernels/training/problem.h"

namespace hippodrome {
namespace {

TrainingProblem Base(const std::string& name, int64_t rows, int64_t cols, bool large) {
  TrainingProblem p;
  p.name = name;
  p.rows = rows;
  p.cols = cols;
  p.terms = static_cast<double>(std::max(rows, cols));
  p.large = large;
  return p;
}

TrainingProblem LayerNormProblem(const std::string& name, int64_t rows, int64_t cols, bool in_place,
                                 bool large = false) {
  constexpr double kEpsilon = 1e-3;
  TrainingProblem p = Base("LayerNorm" + name, rows, cols, large);
  p.operands = {RandomOperand("x", rows, cols, 1, -1, 2),
                RandomOperand("gamma", 1, cols, 2, -1, 2, GradientRule::kAdded),
                RandomOperand("beta", 1, cols, 3, -1, 1, GradientRule::kAdded)};
  p.forward = [](TrainingBackend& backend, Tensors x, Tensor y) {
    backend.LayerNorm(x[0], x[1], x[2], kEpsilon, y);
  };
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    const bool replace = in_place && !dx[0].add && dx[0].tensor.data != nullptr;
    backend.LayerNormBackward(x[0], x[1], kEpsilon, dy, replace ? Gradient{dy} : dx[0],
                              dx[1].tensor, dx[2].tensor);
    if (replace) backend.Copy(dy, dx[0].tensor);
  };
  return p;
}

TrainingProblem ActivateProblem(const std::string& name, int64_t rows, int64_t cols,
                                Epilogue::Activation activation, bool gate, bool in_place,
                                bool large = false) {
  TrainingProblem p = Base("Activate" + name, rows, cols, large);
  p.terms = 8;
  p.operands = {RandomOperand("x", rows, cols, 1, -3, 3)};
  if (gate) p.operands.push_back(RandomOperand("gate", rows, cols, 2));
  const auto epilogue = [=](Tensors x) {
    return Epilogue{.activation = activation, .gate = gate ? x[1] : Tensor()};
  };
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    backend.Activate(x[0], epilogue(x), y);
  };
  p.backward = [=](TrainingBackend& backend, Tensors x, Tensor dy, std::span<const Gradient> dx) {
    const bool replace = in_place && !dx[0].add && dx[0].tensor.data != nullptr;
    backend.ActivateBackward(x[0], epilogue(x), dy, replace ? Gradient{dy} : dx[0],
                             gate ? dx[1] : Gradient());
    if (replace) backend.Copy(dy, dx[0].tensor);
  };
  return p;
}

// Of a table, as GatherRows reads it.
TrainingProblem ScatterProblem(const std::string& name, int64_t table_rows, int64_t rows,
                               int64_t cols, bool large = false) {
  TrainingProblem p = Base("ScatterRows" + name, rows, cols, large);
  p.operands = {RandomOperand("table", table_rows, cols, 1, -1, 1, GradientRule::kAdded)};
  std::vector<int32_t> picked;
  for (int64_t r = 0; r < rows; ++r) {
    picked.push_back(r % 4 == 2 ? -1 : static_cast<int32_t>(r * r % table_rows));
  }
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    backend.GatherRows(x[0], UploadIndices(backend, 1, picked), y);
    backend.Wait();
  };
  p.backward = [=](TrainingBackend& backend, Tensors, Tensor dy, std::span<const Gradient> dx) {
    if (dx[0].tensor.data == nullptr) return;
    backend.ScatterRows(dy, UploadIndices(backend, 1, picked), dx[0].tensor);
    backend.Wait();
  };
  return p;
}

// The last sequence is masked where there are several.
TrainingProblem MeanPoolProblem(const std::string& name, int64_t sequences, int64_t tokens,
                                int64_t cols, bool large = false) {
  TrainingProblem p = Base("MeanPool" + name, sequences, cols, large);
  p.operands = {RandomOperand("x", sequences * tokens, cols, 1)};
  std::vector<int32_t> mask;
  for (int64_t i = 0; i < sequences * tokens; ++i) {
    const bool none = i / tokens > 0 && i / tokens + 1 == sequences;
    mask.push_back(none || i % 3 == 1 ? 0 : 1);
  }
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) {
    backend.MeanPool(x[0], UploadIndices(backend, sequences, mask), y);
    backend.Wait();
  };
  p.backward = [=](TrainingBackend& backend, Tensors, Tensor dy, std::span<const Gradient> dx) {
    backend.MeanPoolBackward(UploadIndices(backend, sequences, mask), dy, dx[0]);
    backend.Wait();
  };
  return p;
}

// Its own backward.
TrainingProblem DropProblem(const std::string& name, int64_t rows, int64_t cols, double p_drop,
                            bool large = false) {
  TrainingProblem p = Base("Drop" + name, rows, cols, large);
  p.operands = {RandomOperand("x", rows, cols, 1, -1, 1, GradientRule::kTaken)};
  const auto drop = [=](TrainingBackend& backend, Tensor x, Tensor y) {
    if (y.data == nullptr) return;
    backend.Copy(x, y);
    backend.Drop(p_drop, 0x123456789abcdefu, y);
  };
  p.forward = [=](TrainingBackend& backend, Tensors x, Tensor y) { drop(backend, x[0], y); };
  p.backward = [=](TrainingBackend& backend, Tensors, Tensor dy, std::span<const Gradient> dx) {
    drop(backend, dy, dx[0].tensor);
  };
  return p;
}

}  // namespace

std::vector<TrainingProblem> RowProblems() {
  return {
      LayerNormProblem("OneRow", 1, 5, false),
      LayerNormProblem("InPlace", 4, 7, true),
      LayerNormProblem("Wide", 3, 33, false),
      LayerNormProblem("Large", 301, 256, false, true),
      LayerNormProblem("LargeInPlace", 77, 131, true, true),
      ActivateProblem("Sigmoid", 3, 5, Epilogue::Activation::kSigmoid, true, false),
      ActivateProblem("Silu", 5, 4, Epilogue::Activation::kSilu, false, false),
      ActivateProblem("GeluInPlace", 4, 7, Epilogue::Activation::kGeluErf, true, true),
      ActivateProblem("Large", 70, 301, Epilogue::Activation::kGeluErf, true, false, true),
      ScatterProblem("Few", 5, 9, 4),
      ScatterProblem("OneRow", 1, 3, 2),
      ScatterProblem("Large", 50, 700, 67, true),
      MeanPoolProblem("OneToken", 1, 1, 3),
      MeanPoolProblem("Masked", 3, 5, 4),
      MeanPoolProblem("Large", 5, 70, 67, true),
      DropProblem("Tenth", 5, 7, 0.1),
      DropProblem("Half", 3, 4, 0.5),
      DropProblem("Nothing", 2, 3, 0),
      DropProblem("Large", 130, 67, 0.1, true),
  };
}

}  // namespace hippodrome
