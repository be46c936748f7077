// How fast this machine could train at best.
#ifndef HIPPODROME_TOOLS_TRAIN_RUN_RUN_LIMIT_H_
#define HIPPODROME_TOOLS_TRAIN_RUN_RUN_LIMIT_H_

#include <cstdint>

#include "tools/train/run/run_file.h"
#include "tools/train/run/starting_model.h"

namespace hippodrome {

// Tokens per second, from ceilings that are measured now (about half a second); `parameters`: the
// number of values that are trained.
double RunLimit(const TrainingRun& run, const ModelConfig& config, int64_t parameters);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_RUN_RUN_LIMIT_H_
