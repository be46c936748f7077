// What stands behind '?' in a path, and percent-encoding.
#ifndef HIPPODROME_SERVER_HTTP_QUERY_H_
#define HIPPODROME_SERVER_HTTP_QUERY_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hippodrome {

// Nothing for '%' without two hexadecimal digits behind it.
std::optional<std::string> DecodePercent(std::string_view text);

// NAME=VALUE&.. to values by name, both decoded, '+' being a space. Errors: kInvalidArgument, with
// the name where it is that which is there twice.
absl::StatusOr<std::map<std::string, std::string>> ParseQuery(std::string_view query);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_QUERY_H_
