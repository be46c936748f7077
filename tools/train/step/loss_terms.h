// Losses of features that a last product makes logits of.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_LOSS_TERMS_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_LOSS_TERMS_H_

#include <cstdint>
#include <span>

#include "kernels/tape/tape.h"
#include "tools/train/step/trainee.h"

namespace hippodrome {

// The last product of a model.
struct LastProduct {
  Tensor features;  // [rows, d]
  const LinearWeights& weights;
  Tensor bias;  // or empty
};

// How many labels are not -1.
int64_t Labelled(std::span<const int32_t> labels);

// Softmax cross-entropy of each row with its label, -1 for none; the last operation of a forward.
// While `tape` records, the gradients of `scale` times the sum are made.
BatchLoss CrossEntropy(Tape& tape, const LastProduct& product, std::span<const int32_t> labels,
                       double scale);

// Which of the labelled rows have their largest logit at the label; nothing else is set.
BatchLoss Judge(Tape& tape, const LastProduct& product, std::span<const int32_t> labels);

// (logits - target)^2 of each row; logits: [rows, 1].
BatchLoss SquaredError(Tape& tape, const LastProduct& product, std::span<const float> targets,
                       double scale);

// The terms of [B, 2] answers, first and last token, in sequences of T tokens: the loss is
// (mean over first tokens + mean over last tokens) / 2, each mean over the answers whose token lies
// in [0, T), and 0 where there is none, as of the published model.
LossTerms AnswerTerms(int64_t sequences, int64_t length, std::span<const int32_t> answers);

// The cross-entropies of the first and the last token of each answer among the tokens of its
// sequence; logits: [B T, 2]. `terms`: of the batch that these sequences are a part of.
BatchLoss SpanCrossEntropy(Tape& tape, const LastProduct& product, int64_t sequences,
                           std::span<const int32_t> answers, const LossTerms& terms);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_LOSS_TERMS_H_
