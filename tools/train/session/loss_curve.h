// A picture of a training run.
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_LOSS_CURVE_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_LOSS_CURVE_H_

#include <string>
#include <vector>

#include "tools/train/session/metrics_log.h"

namespace hippodrome {

// An SVG of the loss over the steps: of training, pale as it was and strong as a mean over the
// neighbouring fiftieth of the lines; of the validation set as points. Without any loss, empty
// axes.
std::string DrawLossCurve(const std::vector<MetricsLine>& lines);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_SESSION_LOSS_CURVE_H_
