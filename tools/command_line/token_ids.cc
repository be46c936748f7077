#include "tools/command_line/token_ids.h"

#include <charconv>
#include <sstream>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr char kSpace[] = " \t\r\n";

}  // namespace

absl::StatusOr<std::vector<int32_t>> ParseTokenIds(const std::string& text) {
  std::vector<int32_t> ids;
  std::istringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) {
    const size_t first = part.find_first_not_of(kSpace);
    const size_t last = part.find_last_not_of(kSpace);
    const std::string digits =
        first == std::string::npos ? "" : part.substr(first, last - first + 1);
    int32_t id = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, id);
    if (error != std::errc() || stop != end || id < 0) {
      return InvalidArgument("'" + part + "' is not a token id; expected ids such as 1,2,3");
    }
    ids.push_back(id);
  }
  return ids;
}

}  // namespace hippodrome
