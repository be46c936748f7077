// Choosing a token, step by step.
#ifndef HIPPODROME_TESTS_REFERENCE_SAMPLE_H_
#define HIPPODROME_TESTS_REFERENCE_SAMPLE_H_

#include "kernels/backend.h"

namespace hippodrome::reference {

// logits: [1, >= vocab].
int32_t SampleOne(Tensor logits, int64_t vocab, const SamplingParameters& parameters,
                  int64_t position);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_SAMPLE_H_
