// One sequence of each synthetic task.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_SYNTHETIC_SEQUENCES_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_SYNTHETIC_SEQUENCES_H_

#include <cstdint>
#include <vector>

#include "tools/train/data/numpy_generator.h"

namespace hippodrome {

// `length` + 2 tokens of `vocabulary` ids, drawn as the published generator draws them.
std::vector<int32_t> InductionHeadSequence(int64_t vocabulary, int64_t length,
                                           NumpyGenerator& random);
// `length` + 3 tokens.
std::vector<int32_t> AssociativeRecallSequence(int64_t vocabulary, int64_t length,
                                               NumpyGenerator& random);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_SYNTHETIC_SEQUENCES_H_
