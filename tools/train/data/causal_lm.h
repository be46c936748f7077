// Language modelling: each token is predicted from those before it.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_CAUSAL_LM_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_CAUSAL_LM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/train/data/batch_sampler.h"
#include "tools/train/data/training_batch.h"

namespace hippodrome {

// Windows w of length + 1 tokens: ids = w[0, length), labels = w[1, length + 1). They follow each
// other over the whole of `tokens`, without regard to documents, and share one token with the next
// one. An epoch of training begins at a random token and leaves out what fills no window;
// evaluation begins at the first one.
//
// Errors: kInvalidArgument when there are too few tokens for a batch.
absl::StatusOr<std::unique_ptr<TrainingData>> MakeCausalLm(std::vector<int32_t> tokens,
                                                           int64_t length,
                                                           const BatchOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_CAUSAL_LM_H_
