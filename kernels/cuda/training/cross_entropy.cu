#include "kernels/cuda/training/cross_entropy.h"

#include <algorithm>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/training/softmax_loss.cuh"

namespace hippodrome::cuda {
namespace {

// Computes the logits, which become their gradients.
void CrossEntropyOfBlock(Device& device, MatmulLibrary* library, const CrossEntropyCall& call) {
  const int64_t rows = call.x.rows;
  const int64_t vocab = call.w.out();
  void* memory =
      device.Scratch(ScratchUse::kLogits, static_cast<size_t>(rows * vocab) * sizeof(float));
  const Tensor logits = {memory, DType::kF32, rows, vocab, vocab};
  Epilogue epilogue;
  epilogue.bias = call.bias;
  Linear(device, library, {call.x, call.w, epilogue, logits});
  const int64_t warps = std::min<int64_t>((vocab + kWarp - 1) / kWarp, kLossThreads / kWarp);
  Launch(device, "softmax_loss", SoftmaxLossKernel,
         {.blocks = dim3(static_cast<unsigned>(rows)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp))},
         SoftmaxLossArguments{.logits = DeviceRow<float>(logits, 0),
                              .stride = logits.stride,
                              .vocab = vocab,
                              .labels = DeviceRow<int32_t>(call.labels, 0),
                              .scale = static_cast<float>(call.scale),
                              .losses = DeviceRow<float>(call.losses, 0),
                              .wants_gradients = call.gradients != nullptr});
  if (call.gradients == nullptr) return;
  LinearBackward(device, library, {call.x, call.w, {}, logits, *call.gradients});
}

}  // namespace

void LinearCrossEntropy(Device& device, MatmulLibrary* library, const CrossEntropyCall& call) {
  assert(call.x.cols == call.w.in());
  assert(call.labels.cols == call.x.rows && call.losses.cols == call.x.rows);
  const int64_t most = LinearBlockRows(call.w.out());
  for (int64_t begin = 0; begin < call.x.rows; begin += most) {
    const int64_t rows = std::min(most, call.x.rows - begin);
    LinearGradients wanted = call.gradients == nullptr ? LinearGradients{} : *call.gradients;
    if (wanted.x.tensor.data != nullptr) wanted.x.tensor = wanted.x.tensor.Rows(begin, rows);
    CrossEntropyOfBlock(device, library,
                        {.x = call.x.Rows(begin, rows),
                         .w = call.w,
                         .bias = call.bias,
                         .labels = call.labels.Cols(begin, rows),
                         .scale = call.scale,
                         .losses = call.losses.Cols(begin, rows),
                         .gradients = call.gradients == nullptr ? nullptr : &wanted});
  }
}

}  // namespace hippodrome::cuda
