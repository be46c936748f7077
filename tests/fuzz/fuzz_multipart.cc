// Any bytes are a form or an error. The parts of a form lie in the body one after the other, and
// cannot hold the boundary.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/http/multipart.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // The first line is the Content-Type.
  const size_t end = input.find('\n');
  if (end == std::string_view::npos) return 0;
  const std::string_view body = input.substr(end + 1);
  const auto parts = hippodrome::ParseMultipart(input.substr(0, end), body);
  if (!parts.ok()) return 0;
  const std::string boundary(body.substr(0, body.find_first_of("\r")));
  const char* behind = body.data();
  for (const hippodrome::FormPart& part : *parts) {
    const std::string_view content = part.content;
    if (content.data() < behind) std::abort();
    behind = content.data() + content.size();
    if (behind > body.data() + body.size()) std::abort();
    if (content.find("\r\n" + boundary) != std::string_view::npos) std::abort();
  }
  return 0;
}
