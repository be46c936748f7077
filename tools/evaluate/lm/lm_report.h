// What is reported of a task.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_LM_REPORT_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_LM_REPORT_H_

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tools/evaluate/lm/lm_figures.h"

namespace hippodrome {

// {"examples": n, metric: figure, .., "intervals": {metric: Interval, ..}}, and "groups", the same
// for each LmOutcome::group, where there are several.
nlohmann::ordered_json LmReport(const LmTask& task, std::span<const LmOutcome> outcomes);

// What one model is better by, or for perplexities worse by, than another one in the same
// questions: {metric: {"difference": x, "standard_error": .., "low": .., "high": ..}, ..}. Both are
// resampled together. REQUIRES: as many of both.
nlohmann::ordered_json LmComparison(const LmTask& task, std::span<const LmOutcome> outcomes,
                                    std::span<const LmOutcome> others);

// "acc 0.5310 +- 0.0158, ..", of a report or a part of one.
std::string LmReportLine(const LmTask& task, const nlohmann::ordered_json& report);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_LM_REPORT_H_
