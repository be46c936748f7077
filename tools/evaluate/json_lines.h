// Data sets with a JSON object in each line.
#ifndef HIPPODROME_TOOLS_EVALUATE_JSON_LINES_H_
#define HIPPODROME_TOOLS_EVALUATE_JSON_LINES_H_

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/json_object.h"
#include "engine/base/status.h"

namespace hippodrome {

// What `read`, which gives absl::StatusOr<T>, makes of each object, with the line's number in
// T::line; empty lines are skipped. `things` is what the lines are called. Errors:
// kInvalidArgument with the line, or where there are none.
template <typename T, typename Read>
absl::StatusOr<std::vector<T>> ReadJsonLines(std::string_view text, const std::string& things,
                                             const Read& read) {
  std::vector<T> all;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto object = ParseJsonObject(std::string(line));
    absl::StatusOr<T> one =
        object.ok() ? read(*std::move(object)) : absl::StatusOr<T>(object.status());
    if (!one.ok()) {
      return InvalidArgument("line " + std::to_string(number) + ": " + Message(one.status()));
    }
    one->line = number;
    all.push_back(*std::move(one));
  }
  if (all.empty()) return InvalidArgument("there are no " + things);
  return all;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_JSON_LINES_H_
