// Bodies of multipart/form-data (RFC 7578), as forms upload files.
#ifndef HIPPODROME_SERVER_HTTP_MULTIPART_H_
#define HIPPODROME_SERVER_HTTP_MULTIPART_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

struct FormPart {
  std::string name;
  std::optional<std::string> file_name;  // of a file
  std::string_view content;              // within the body
};

// Reads `body` strictly: what two readers could take for different forms is refused. There is
// nothing before the first boundary or behind the last one, and a part has one Content-Disposition
// with a name. `content_type`: the field of the request. Errors: kInvalidArgument, also for more
// than 16 parts and for a part whose head has more than 8 KiB.
absl::StatusOr<std::vector<FormPart>> ParseMultipart(std::string_view content_type,
                                                     std::string_view body);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_MULTIPART_H_
