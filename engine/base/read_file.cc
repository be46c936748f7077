#include "engine/base/read_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) {
    const std::string message = path + ": " + std::strerror(errno);
    return errno == ENOENT ? NotFound(message) : InvalidArgument(message);
  }
  std::string text;
  char buffer[65536];
  while (const size_t read = std::fread(buffer, 1, sizeof(buffer), file.get())) {
    text.append(buffer, read);
    if (text.size() > most) {
      return InvalidArgument(path + ": expected at most " + std::to_string(most) + " bytes");
    }
  }
  if (std::ferror(file.get())) return InvalidArgument(path + ": " + std::strerror(errno));
  return text;
}

}  // namespace hippodrome
