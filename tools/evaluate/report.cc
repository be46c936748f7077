#include "tools/evaluate/report.h"

#include <cstdio>
#include <string>

#include "tools/command_line/text_file.h"

namespace hippodrome {

absl::Status Report(const CommandLine& line, const nlohmann::json& json) {
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
  if (line.Has("json")) return WriteTextFile(line.Text("json"), text + "\n");
  return absl::OkStatus();
}

}  // namespace hippodrome
