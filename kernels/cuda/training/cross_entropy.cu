// A block turns a row of logits into a loss and its gradients.
#include "kernels/cuda/training/cross_entropy.h"

#include <algorithm>

#include "kernels/cuda/base/block_reduce.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

constexpr int kLossThreads = 512;

struct SoftmaxLossArguments {
  float* logits;  // rows of `stride`; replaced by their gradients
  int64_t stride;
  int64_t vocab;
  const int32_t* labels;  // -1: neither a loss nor gradients
  float scale;            // of the gradients
  float* losses;
  bool wants_gradients;
};

// One block per row, of whole warps. The order of the sum follows from the vocabulary alone.
__global__ void __launch_bounds__(kLossThreads) SoftmaxLossKernel(SoftmaxLossArguments a) {
  __shared__ float partial[2][kWarp];
  const int64_t row = blockIdx.x;
  float* logits = a.logits + row * a.stride;
  const int32_t label = a.labels[row];
  if (label < 0) {
    if (threadIdx.x == 0) a.losses[row] = 0;
    if (!a.wants_gradients) return;
    for (int64_t i = threadIdx.x; i < a.vocab; i += blockDim.x) logits[i] = 0;
    return;
  }
  float most = logits[0];
  for (int64_t i = threadIdx.x; i < a.vocab; i += blockDim.x) most = fmaxf(most, logits[i]);
  most = BlockMax(most, partial[0]);
  float sum = 0;
  for (int64_t i = threadIdx.x; i < a.vocab; i += blockDim.x) sum += expf(logits[i] - most);
  // Beyond its barrier nobody reads logits of others.
  const float distance = most - logits[label];
  sum = BlockSum(sum, partial[1]);
  if (threadIdx.x == 0) a.losses[row] = logf(sum) + distance;
  if (!a.wants_gradients) return;
  const float factor = a.scale / sum;
  for (int64_t i = threadIdx.x; i < a.vocab; i += blockDim.x) {
    logits[i] = expf(logits[i] - most) * factor - (i == label ? a.scale : 0.0f);
  }
}

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
