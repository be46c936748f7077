// What /metrics says, read: the text format of Prometheus, version 0.0.4.
#ifndef HIPPODROME_TOOLS_CLIENT_METRICS_TEXT_H_
#define HIPPODROME_TOOLS_CLIENT_METRICS_TEXT_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

struct MetricSample {
  std::string name;  // with the _bucket, _sum or _count of a histogram
  std::map<std::string, std::string> labels;
  double value = 0;
};

// Labels that a sample must have, others aside.
using LabelMatch = std::map<std::string, std::string>;

class MetricsText {
 public:
  // Strict: names and label names of the allowed characters, quoted labels with the three escapes,
  // a number, nothing behind it but a timestamp, no sample twice, known types. Errors:
  // kInvalidArgument with the line.
  static absl::StatusOr<MetricsText> Parse(std::string_view text);

  const std::vector<MetricSample>& samples() const { return samples_; }
  // The sum over the samples of this name with these labels; none: there is no such sample.
  std::optional<double> Sum(const std::string& name, const LabelMatch& match = {}) const;
  // The values that a label of these samples has, sorted.
  std::vector<std::string> Values(const std::string& name, const std::string& label) const;
  // A histogram: upper bound, +Inf last, to how many observations are at most that; summed over
  // the samples with these labels. Empty: there is none.
  std::map<double, double> Buckets(const std::string& histogram,
                                   const LabelMatch& match = {}) const;

 private:
  std::vector<MetricSample> samples_;
};

// The value below which `part`, in [0, 1], of the observations lie that came between two readings
// of a histogram, evenly spread within each bucket as Prometheus's histogram_quantile() takes it;
// of those beyond the last finite bound, that bound. None: there was no observation. A histogram
// that has begun anew counts from 0.
std::optional<double> BucketQuantile(const std::map<double, double>& before,
                                     const std::map<double, double>& now, double part);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CLIENT_METRICS_TEXT_H_
