#include "tools/command_line/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) return NotFound(path + ": cannot be read: " + std::strerror(errno));
  return text.str();
}

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text << std::flush;
  if (!out) return Internal(path + ": cannot be written: " + std::strerror(errno));
  return absl::OkStatus();
}

}  // namespace hippodrome
