#include "kernels/cpu/training/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/gemm/linear_backward_amx.h"
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
                         const Tensor& bias, double scale, DotKernel kernel) {
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

constexpr int64_t kBlockRows = 256;  // of a task
constexpr int64_t kGroupPanels = 8;  // of a task; fixed, as the order of the sums depends on it

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What the first pass leaves of each row.
struct RowLogits {
  SoftmaxLanes* parts;  // [groups of panels][rows]
  float* of_labels;     // the logits of the labels
};

// The head and the rows' targets.
struct Head {
  const PackedWeights& w;
  Tensor bias;
  const int32_t* labels;

  const float* bias_at(int64_t column) const {
    return bias.data == nullptr ? nullptr : F32Row(bias, 0) + column;
  }
};

// A piece of logits into the sums of its rows, 32 columns at a time, so that a row's sum does not
// depend on the shape of the pieces.
void ExtendRows(const Head& head, const AmxSums& piece, SoftmaxLanes* parts, float* of_labels) {
  constexpr int64_t kStep = 32;
  for (int64_t r = 0; r < piece.rows; ++r) {
    float* logits = piece.sums + r * kPanelColumns;
    for (int64_t c = 0; c < piece.cols; c += kStep) {
      ExtendSoftmaxLanes(logits + c, head.bias_at(piece.column + c),
                         std::min(kStep, piece.cols - c), parts[piece.row + r]);
    }
    const int64_t label = head.labels[piece.row + r] - piece.column;
    if (label >= 0 && label < piece.cols) of_labels[piece.row + r] = logits[label];
  }
}

// The first pass.
void SumLogits(ThreadPool& pool, const AmxTiles& x, const Head& head, const RowLogits& to) {
  const int64_t panels = head.w.panels();
  const int64_t blocks = DivideUp(x.rows, kBlockRows);
  pool.Run(blocks * DivideUp(panels, kGroupPanels), [&](int64_t index, int) {
    const int64_t group = index / blocks;
    const int64_t begin = index % blocks * kBlockRows;
    const int64_t end = std::min(begin + kBlockRows, x.rows);
    SoftmaxLanes* parts = to.parts + group * x.rows;
    for (int64_t row = begin; row < end; ++row) {
      std::fill_n(parts[row].largest, kSoftmaxLanes, kNoLogit);
      std::fill_n(parts[row].sum, kSoftmaxLanes, 0.0f);
    }
    const int64_t last = std::min((group + 1) * kGroupPanels, panels);
    const AmxRegisters registers;
    for (int64_t panel = group * kGroupPanels; panel < last; ++panel) {
      MultiplyAmxPanels(x, head.w, panel, panel + 1, begin, end, [&](const AmxSums& piece) {
        ExtendRows(head, piece, parts, to.of_labels);
      });
    }
  });
}

// What makes probabilities of a row's logits.
struct RowScale {
  float largest;
  float factor;  // scale / sum
};

// A piece of logits becomes scale (softmax - e_label), zero for rows without a label.
void ReplaceByGradient(const Head& head, const RowScale* scales, double scale,
                       const AmxSums& piece) {
  for (int64_t r = 0; r < piece.rows; ++r) {
    float* logits = piece.sums + r * kPanelColumns;
    const int64_t label = head.labels[piece.row + r];
    if (label < 0) {
      std::fill_n(logits, piece.cols, 0.0f);
      continue;
    }
    const RowScale& row = scales[piece.row + r];
    ReplaceByProbabilities(logits, head.bias_at(piece.column), piece.cols, row.largest, row.factor);
    const int64_t column = label - piece.column;
    if (column >= 0 && column < piece.cols) logits[column] -= static_cast<float>(scale);
  }
}

// Memory of the caller for `rows` rows.
struct Scratch {
  Scratch(int64_t rows, int64_t groups) {
    const auto bytes = static_cast<int64_t>(sizeof(SoftmaxLanes)) * groups + 12;
    char* memory = ThreadScratch<char>(ScratchUse::kLogits, rows * bytes);
    logits.parts = reinterpret_cast<SoftmaxLanes*>(memory);
    scales = reinterpret_cast<RowScale*>(logits.parts + groups * rows);
    logits.of_labels = reinterpret_cast<float*>(scales + rows);
  }

  RowLogits logits;
  RowScale* scales;
};

// LinearCrossEntropy() for at most a few thousand rows. The logits are computed twice, for the sums
// of the softmax and for the gradients, which costs less than to store them. labels: of the rows;
// losses: likewise. REQUIRES: HaveAmx(), kBF16 weights.
void CrossEntropyAmx(ThreadPool& pool, const Tensor& x, const TrainedWeights& w, const Tensor& bias,
                     const int32_t* labels, double scale, float* losses,
                     const LinearGradients* gradients) {
  const Head head = {w, bias, labels};
  const int64_t groups = DivideUp(w.panels(), kGroupPanels);
  const Scratch scratch(x.rows, groups);
  const AmxTiles inputs(
      x.rows, x.cols,
      ThreadScratch<BF16>(ScratchUse::kLinearInput, AmxTiles::Elements(x.rows, x.cols)));
  RoundToTiles(pool, x, inputs);
  SumLogits(pool, inputs, head, scratch.logits);
  ParallelRows(pool, x.rows, 32 * groups, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const SoftmaxTotal total = SumSoftmaxLanes(scratch.logits.parts + row, groups, x.rows);
      scratch.scales[row] = {static_cast<float>(total.largest),
                             static_cast<float>(scale / total.sum)};
      const double distance = total.largest - double{scratch.logits.of_labels[row]};
      losses[row] = labels[row] < 0 ? 0 : static_cast<float>(std::log(total.sum) + distance);
    }
  });
  if (gradients == nullptr) return;
  const auto gradient = [&](const AmxSums& piece) {
    ReplaceByGradient(head, scratch.scales, scale, piece);
  };
  LinearBackwardAmx(pool, x, w, {}, gradient, *gradients);
}

}  // namespace

void LinearCrossEntropy(ThreadPool& pool, Tensor x, const TrainedWeights& w, Tensor bias,
                        Tensor labels, double scale, Tensor losses,
                        const LinearGradients* gradients, DotKernel kernel) {
  assert(x.cols == w.in() && labels.cols == x.rows && losses.cols == x.rows);
  const bool amx = w.dtype() == DType::kBF16 && ChosenKernel(kernel) == DotKernel::kAmx;
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
