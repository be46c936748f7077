#include "kernels/cuda/gemm/linear_backward.h"

#include "kernels/cuda/base/column_sums.cuh"
#include "kernels/cuda/base/elementwise.h"
#include "kernels/cuda/base/transpose.h"
#include "kernels/cuda/gemm/linear_epilogue_backward.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int64_t kBlockElements = 1 << 25;
constexpr int64_t kRowStep = 256;

// Rows of matrices that are multiplied are a multiple of this: every type is read in vectors.
constexpr int64_t kDepthStep = 8;

Tensor ScratchMatrix(Device& device, ScratchUse use, DType dtype, int64_t rows, int64_t cols) {
  void* memory = device.Scratch(use, static_cast<size_t>(rows * cols) * SizeOf(dtype));
  return {memory, dtype, rows, cols, cols};
}

template <typename Y>
struct LinearGradientBody {
  Elements<float> z;  // replaced by dz
  EpilogueBackward<Y> epilogue;

  __device__ void operator()(int64_t row, int64_t column) const {
    float& at = z.At(row, column);
    at = epilogue.Gradient(row, column, at);
  }
};

// The terms of dbias.
struct BiasTerm {
  Elements<const float> dz;
  __device__ float operator()(int64_t row, int64_t column) const { return dz.At(row, column); }
};

template <typename Y>
void ReplaceByGradient(Device& device, const Tensor& z, const LinearBackwardCall& call) {
  ForEachElement(
      device, "linear_gradient", {z.rows, z.cols},
      LinearGradientBody<Y>{ElementsOf<float>(z),
                            MakeEpilogueBackward<Y>(call.epilogue, call.dy, call.gradients.gate)});
}

// dz, in scratch memory or dy itself where they are the same. Replaces the gate's gradient.
Tensor GradientOfSums(Device& device, MatmulLibrary* library, const LinearBackwardCall& call) {
  const Epilogue& epilogue = call.epilogue;
  const Tensor& gate = epilogue.gate;
  if (epilogue.activation == Epilogue::Activation::kNone && gate.data == nullptr) return call.dy;
  const Tensor z =
      ScratchMatrix(device, ScratchUse::kLinearGradient, DType::kF32, call.dy.rows, call.dy.cols);
  Linear(device, library, {call.x, call.w, {}, z});
  const DType type = gate.data != nullptr ? gate.dtype : epilogue.bias.dtype;
  assert(gate.data == nullptr || epilogue.bias.data == nullptr || epilogue.bias.dtype == type);
  if (type == DType::kBF16) {
    ReplaceByGradient<BF16>(device, z, call);
  } else {
    ReplaceByGradient<float>(device, z, call);
  }
  return z;
}

// dx = dz W, dz rounded to the type of W.
void InputGradient(Device& device, MatmulLibrary* library, const Tensor& dz,
                   const TrainedWeights& w, const Gradient& dx) {
  Tensor rounded = dz;
  if (w.dtype() == DType::kBF16) {
    rounded = ScratchMatrix(device, ScratchUse::kLinearNarrowed, w.dtype(), dz.rows, dz.cols);
    Copy(device, dz, rounded);
  }
  Epilogue epilogue;
  if (dx.add) epilogue.residual = dx.tensor;
  Linear(device, library, {rounded, w.transposed(), epilogue, dx.tensor});
}

// dW += dz^T x, as a product of dz^T with the columns of x, both rounded to the type of W.
void AddWeightGradient(Device& device, MatmulLibrary* library, const Tensor& x, const Tensor& dz,
                       DType dtype, const Tensor& dw) {
  const int64_t depth = (x.rows + kDepthStep - 1) / kDepthStep * kDepthStep;
  const Tensor left = ScratchMatrix(device, ScratchUse::kLinearTransposed, dtype, dz.cols, depth);
  const Tensor right = ScratchMatrix(device, ScratchUse::kLinearInputs, dtype, x.cols, depth);
  Transpose(device, dz, left);
  Transpose(device, x, right);
  const PackedWeights columns(right.data, right.rows, right.cols, dtype);
  Epilogue epilogue;
  epilogue.residual = dw;
  Linear(device, library, {left, columns, epilogue, dw});
}

void BackwardOfBlock(Device& device, MatmulLibrary* library, const LinearBackwardCall& call) {
  const Tensor dz = GradientOfSums(device, library, call);
  const LinearGradients& gradients = call.gradients;
  if (gradients.bias.data != nullptr) {
    AddColumnSums(device, "linear_bias_gradient", {dz.rows, dz.cols},
                  BiasTerm{ElementsOf<const float>(dz)}, gradients.bias);
  }
  if (gradients.x.tensor.data != nullptr) InputGradient(device, library, dz, call.w, gradients.x);
  if (gradients.weights.data != nullptr) {
    AddWeightGradient(device, library, call.x, dz, call.w.dtype(), gradients.weights);
  }
}

Tensor RowsOrNone(const Tensor& tensor, int64_t begin, int64_t count) {
  return tensor.data == nullptr ? tensor : tensor.Rows(begin, count);
}

}  // namespace

int64_t LinearBlockRows(int64_t cols) {
  return std::max<int64_t>(kBlockElements / cols / kRowStep, 1) * kRowStep;
}

void LinearBackward(Device& device, MatmulLibrary* library, const LinearBackwardCall& call) {
  const LinearGradients& gradients = call.gradients;
  assert(call.x.cols == call.w.in() && call.dy.cols == call.w.out());
  assert(call.x.rows == call.dy.rows);
  const int64_t most = LinearBlockRows(std::max(call.w.in(), call.w.out()));
  for (int64_t begin = 0; begin < call.x.rows; begin += most) {
    const int64_t rows = std::min(most, call.x.rows - begin);
    Epilogue epilogue = call.epilogue;
    epilogue.gate = RowsOrNone(epilogue.gate, begin, rows);
    LinearGradients wanted = gradients;
    wanted.x.tensor = RowsOrNone(gradients.x.tensor, begin, rows);
    wanted.gate.tensor = RowsOrNone(gradients.gate.tensor, begin, rows);
    BackwardOfBlock(
        device, library,
        {call.x.Rows(begin, rows), call.w, epilogue, call.dy.Rows(begin, rows), wanted});
  }
}

}  // namespace hippodrome::cuda
