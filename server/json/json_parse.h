// Text to a JSON object, with bounds on what a body may cost.
#ifndef HIPPODROME_SERVER_JSON_JSON_PARSE_H_
#define HIPPODROME_SERVER_JSON_JSON_PARSE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hippodrome {

using Json = nlohmann::json;

// Parses an object of at most 64 levels, in which no object has a member twice, and with at most
// 65,536 strings, members, arrays and objects: all of these take more memory than they have bytes.
// Stops where the first of these is broken. Errors: kInvalidArgument with the place, or the member
// that is there twice. `what` it is, for errors.
absl::StatusOr<Json> ParseObject(const std::string& text, const char* what = "the body");

// What is between the quotes of the longest string in `text`, which need not be valid, and whether
// it is the value of a member `name`, written without escapes.
struct LongestString {
  std::string_view value;
  bool is_member = false;
};
LongestString FindLongestString(std::string_view text, std::string_view name);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_PARSE_H_
