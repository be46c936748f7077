// The head of an HTTP/1.1 request, read strictly: what two readers could take for different
// requests (RFC 9112, section 11.2) is refused, not mended.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_HEAD_H_
#define HIPPODROME_SERVER_HTTP_HTTP_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hippodrome {

// Why a request is not answered by any route. The connection must end with it, for nobody knows
// where the next request begins.
struct HttpRefusal {
  int status = 400;
  std::string code;  // in OpenAI's sense
  std::string message;
};

struct RequestHead {
  std::string method;
  std::string path;   // as sent: percent-encodings are not decoded
  std::string query;  // behind '?', as sent
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case
  bool http11 = true;                                       // false: HTTP/1.0
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;        // how the body is sent; else by its length
  int64_t content_length = 0;  // INT64_MAX where it does not fit

  // The first field of that name, in lower case, or null.
  const std::string* Find(std::string_view name) const;
};

constexpr size_t kMaxFields = 100;
constexpr size_t kMaxTargetBytes = 8 << 10;

// Bytes of the head at the start of `input`, its empty line included; nothing while it is
// incomplete. `from`: where to begin searching, as far as earlier calls came.
std::optional<size_t> FindHeadEnd(std::string_view input, size_t from);
// The refusal of a head that is larger than `limit`: 414 where the target alone is, else 431.
HttpRefusal HeadTooLarge(std::string_view input, int64_t limit);

// Reads `text`, a head with its empty line. Fills `head`, or returns why the request is refused:
// 400; 414 and 431 beyond the limits above; 415 for a body with a Content-Encoding; 417 for an
// expectation that is not 100-continue; 505.
std::optional<HttpRefusal> ParseHead(std::string_view text, RequestHead& head);

// Whether `text` is what may stand in a field: no control characters but tabs.
bool IsFieldText(std::string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_HEAD_H_
