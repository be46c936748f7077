// Token ids on the command line.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_TOKEN_IDS_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_TOKEN_IDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// "1,2,3" to ids; space around numbers is allowed. Errors name the part at fault.
absl::StatusOr<std::vector<int32_t>> ParseTokenIds(const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_TOKEN_IDS_H_
