// The loss of a row of logits, and its gradient: of a whole row, or of one that comes in pieces.
#ifndef HIPPODROME_KERNELS_CPU_TRAINING_SOFTMAX_LOSS_H_
#define HIPPODROME_KERNELS_CPU_TRAINING_SOFTMAX_LOSS_H_

#include <cstdint>
#include <limits>

namespace hippodrome::cpu {

// Gives -log softmax(logits)[label] and replaces the logits by `scale` times its gradient,
// softmax(logits) - e_label; label -1 gives zeros. REQUIRES: n > 0, label in [-1, n).
// Errors: u of the largest |logit| and g(n / 4) for the loss; those of the loss times |gradient|.
float SoftmaxLoss(float* logits, int64_t n, int32_t label, double scale);

// A row that comes in pieces.

inline constexpr int64_t kSoftmaxLanes = 16;

// The largest logit so far in each lane of a vector, and sum_i exp(logit_i - largest): lanes meet
// at the end only.
struct SoftmaxLanes {
  float largest[kSoftmaxLanes];
  float sum[kSoftmaxLanes];
};
inline constexpr float kNoLogit = std::numeric_limits<float>::lowest();

// Adds the bias (or null) to n logits in place, and these to the lanes; the first piece begins at
// `largest` kNoLogit and `sum` 0.
void ExtendSoftmaxLanes(float* logits, const float* bias, int64_t n, SoftmaxLanes& lanes);

// The largest logit of a row, and sum_i exp(logit_i - largest).
struct SoftmaxTotal {
  double largest;
  double sum;
};
// `parts`: `count` of them, `stride` apart.
SoftmaxTotal SumSoftmaxLanes(const SoftmaxLanes* parts, int64_t count, int64_t stride);

// Replaces n logits, without their bias (or null), by factor exp(logit - largest).
void ReplaceByProbabilities(float* logits, const float* bias, int64_t n, float largest,
                            float factor);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_TRAINING_SOFTMAX_LOSS_H_
