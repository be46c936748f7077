// The outcome of an evaluation.
#ifndef HIPPODROME_TOOLS_EVALUATE_REPORT_H_
#define HIPPODROME_TOOLS_EVALUATE_REPORT_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "tools/command_line/command_line.h"

namespace hippodrome {

// Prints `json` on stdout, and writes it to the file that --json names.
absl::Status Report(const CommandLine& line, const nlohmann::json& json);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_REPORT_H_
