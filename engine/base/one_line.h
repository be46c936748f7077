// Text from an untrusted file, made fit for a one-line message.
#ifndef HIPPODROME_ENGINE_BASE_ONE_LINE_H_
#define HIPPODROME_ENGINE_BASE_ONE_LINE_H_

#include <string>
#include <string_view>

namespace hippodrome {

// `text` with control characters and bytes beyond ASCII replaced by '?', cut after 80 bytes.
std::string OneLine(std::string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_ONE_LINE_H_
