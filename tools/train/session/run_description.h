// What the model card of a trained model says of the run that it comes from.
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_RUN_DESCRIPTION_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_RUN_DESCRIPTION_H_

#include <string>
#include <vector>

#include "tools/train/checkpoint/training_state.h"
#include "tools/train/run/run_file.h"
#include "tools/train/session/metrics_log.h"

namespace hippodrome {

// Markdown: where it began, files of data without their folders, steps, tokens and seed, and of
// `lines` the loss of the last step and the last figures of the validation set, or with early
// stopping the best. The same for a run that was resumed.
std::string DescribeRun(const TrainingRun& run, const TrainingPosition& position,
                        const std::vector<MetricsLine>& lines);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_SESSION_RUN_DESCRIPTION_H_
