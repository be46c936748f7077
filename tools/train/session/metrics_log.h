// The course of a training run, as a log and as a picture. The log is OUT/metrics.jsonl, a JSON
// object per line. Numbers that are not finite are null.
//
//   {"step": 10, "tokens": 40960, "seconds": 1.5, "loss": 5.1, "rate": 0.0001, ..}
//   {"step": 10, "tokens": 40960, "seconds": 1.6, "valid_loss": 5.2, "accuracy": 0.1, ..}
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_METRICS_LOG_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_METRICS_LOG_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// A line. Its values by name: of training "loss", a mean since the line before, "step_loss", of the
// last step alone, "rate", "gradient_norm", "tokens_per_second", "fraction_of_limit"; of an
// evaluation "valid_loss" and the metrics of the objective.
struct MetricsLine {
  int64_t step = 0;    // steps done
  int64_t tokens = 0;  // trained on
  double seconds = 0;  // of training
  std::map<std::string, double> values;
};

// A log that is open for more lines. Not thread-safe.
class MetricsLog {
 public:
  // Opens the file, made when absent, and takes the lines after `step` out of it, with any line
  // that is not whole: a file from which lines go is written anew beside it and renamed. step = -1
  // begins anew. Errors: kInternal with the path and the system's reason.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(const std::string& path, int64_t step);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // The line is in the file when this returns. Errors: as above.
  absl::Status Append(const MetricsLine& line);

 private:
  MetricsLog(std::string path, FILE* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  FILE* file_;
};

// The lines of a log; the last one is left out if it is not whole. Values that are null are left
// out too. Errors: kNotFound; kInvalidArgument with the number of a line that is none.
absl::StatusOr<std::vector<MetricsLine>> ReadMetrics(const std::string& path);

// An SVG of the loss over the steps: of training, pale as it was and strong as a mean over the
// neighbouring fiftieth of the lines; of the validation set as points. Without any loss, empty
// axes.
std::string DrawLossCurve(const std::vector<MetricsLine>& lines);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_SESSION_METRICS_LOG_H_
