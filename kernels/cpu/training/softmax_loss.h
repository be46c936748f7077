// The loss of one row of logits, and its gradient.
#ifndef HIPPODROME_KERNELS_CPU_TRAINING_SOFTMAX_LOSS_H_
#define HIPPODROME_KERNELS_CPU_TRAINING_SOFTMAX_LOSS_H_

#include <cstdint>

namespace hippodrome::cpu {

// Gives -log softmax(logits)[label] and replaces the logits by `scale` times its gradient,
// softmax(logits) - e_label; label -1 gives zeros. REQUIRES: n > 0, label in [-1, n).
// Errors: u of the largest |logit| and g(n / 4) for the loss; those of the loss times |gradient|.
float SoftmaxLoss(float* logits, int64_t n, int32_t label, double scale);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_TRAINING_SOFTMAX_LOSS_H_
