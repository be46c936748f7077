// Says what a benchmark measured.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_REPORT_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "tools/bench/figures.h"
#include "tools/command_line/command_line.h"

namespace hippodrome {

// Prints the figures; with --json FILE also writes all but the shares there. Errors: of writing.
absl::Status Report(const CommandLine& line, const std::string& machine, const Figures& figures);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_REPORT_H_
