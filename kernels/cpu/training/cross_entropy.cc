#include "kernels/cpu/training/cross_entropy.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/training/cross_entropy_amx.h"
#include "kernels/cpu/training/softmax_loss.h"

namespace hippodrome::cpu {
namespace {

// The logits of a block of rows are about this many; many rows make the sums over rows worth while,
// few keep a large vocabulary within the last-level cache.
constexpr int64_t kBlockLogits = 1 << 21;
constexpr int64_t kMinBlockRows = 256;
constexpr int64_t kMaxBlockRows = 1024;

int64_t BlockRows(int64_t vocab) {
  return std::clamp(kBlockLogits / vocab, kMinBlockRows, kMaxBlockRows);
}

// One block of rows of everything.
struct Block {
  Tensor x;
  const int32_t* labels;
  float* losses;
  const LinearGradients* gradients;
};

// Computes the logits, which become their gradients.
void CrossEntropyOfBlock(ThreadPool& pool, const Block& block, const TrainedWeights& w,
                         const Tensor& bias, double scale, BF16Kernel kernel) {
  const int64_t rows = block.x.rows;
  const Tensor logits = {.data = ThreadScratch<float>(ScratchUse::kLogits, rows * w.out()),
                         .dtype = DType::kF32,
                         .rows = rows,
                         .cols = w.out(),
                         .stride = w.out()};
  Linear(pool, block.x, w, {.bias = bias}, logits, kernel);
  ParallelRows(pool, rows, 4 * logits.cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      block.losses[row] = SoftmaxLoss(F32Row(logits, row), logits.cols, block.labels[row], scale);
    }
  });
  if (block.gradients == nullptr) return;
  LinearBackward(pool, block.x, w, {}, logits, *block.gradients, kernel);
}

}  // namespace

void LinearCrossEntropy(ThreadPool& pool, Tensor x, const TrainedWeights& w, Tensor bias,
                        Tensor labels, double scale, Tensor losses,
                        const LinearGradients* gradients, BF16Kernel kernel) {
  assert(x.cols == w.in() && labels.cols == x.rows && losses.cols == x.rows);
  const bool amx = w.dtype() == DType::kBF16 && ChosenKernel(kernel) == BF16Kernel::kAmx;
  const int64_t most = BlockRows(w.out());
  for (int64_t begin = 0; begin < x.rows; begin += most) {
    const int64_t rows = std::min(most, x.rows - begin);
    LinearGradients wanted = gradients == nullptr ? LinearGradients{} : *gradients;
    if (wanted.x.tensor.data != nullptr) wanted.x.tensor = wanted.x.tensor.Rows(begin, rows);
    const Block block = {.x = x.Rows(begin, rows),
                         .labels = I32Row(labels, 0) + begin,
                         .losses = F32Row(losses, 0) + begin,
                         .gradients = gradients == nullptr ? nullptr : &wanted};
    if (amx) {
      CrossEntropyAmx(pool, block.x, w, bias, block.labels, scale, block.losses, block.gradients);
    } else {
      CrossEntropyOfBlock(pool, block, w, bias, scale, kernel);
    }
  }
}

}  // namespace hippodrome::cpu
