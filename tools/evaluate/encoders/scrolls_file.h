// ContractNLI and QuALITY as SCROLLS publishes them: a JSON object in each line, {"id", "pid",
// "input", "output"}, whose input begins with a question and a blank line.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_SCROLLS_FILE_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_SCROLLS_FILE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

struct ContractExample {
  int64_t line = 0;  // from 1
  std::string hypothesis;
  std::string contract;  // all of it, with its blank lines
  std::string label;     // "Entailment"
};

// Of both: members beyond "input" and "output" may be missing, empty lines are skipped. Errors:
// kInvalidArgument with the line and the member at fault, or when there are no examples.
absl::StatusOr<std::vector<ContractExample>> ReadContractNli(std::string_view text);

struct QualityQuestion {
  int64_t line = 0;
  std::string question;
  std::array<std::string, 4> options;  // what is behind "(A)" to "(D)", each at a line's beginning
  std::string article;
  size_t gold = 0;    // the option that is "output", white space apart
  bool hard = false;  // "is_hard"
};

absl::StatusOr<std::vector<QualityQuestion>> ReadQuality(std::string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_SCROLLS_FILE_H_
