// Text to a JSON object, with bounds on what a body may cost.
#ifndef HIPPODROME_SERVER_JSON_JSON_PARSE_H_
#define HIPPODROME_SERVER_JSON_JSON_PARSE_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace hippodrome {

using Json = nlohmann::json;

// Parses an object of at most 64 levels, in which no object has a member twice, and with at most
// 65,536 strings, members, arrays and objects: all of these take more memory than they have bytes.
// Stops where the first of these is broken. Errors: kInvalidArgument with the place, or the member
// that is there twice. `what` it is, for errors.
absl::StatusOr<Json> ParseObject(const std::string& text, const char* what = "the body");

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_PARSE_H_
