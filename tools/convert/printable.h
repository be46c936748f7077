// Text from an untrusted file, made fit for a one-line message.
#ifndef HIPPODROME_TOOLS_CONVERT_PRINTABLE_H_
#define HIPPODROME_TOOLS_CONVERT_PRINTABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hippodrome {

// `text` with everything but printable ASCII replaced by '?', cut after 120 characters.
std::string Printable(std::string_view text);

// "[2, 3]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_PRINTABLE_H_
