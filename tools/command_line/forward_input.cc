#include "tools/command_line/forward_input.h"

#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/command_line/integer_matrix.h"

namespace hippodrome {

Option InputOption() { return {"input", "FILE", "safetensors to read"}; }

Option OutputOption() { return {"output", "FILE", "safetensors to write"}; }

Option ModeOption() {
  return {"mode", "prefill|step|chunked=N",
          "how a language model takes its input: as a whole, by tokens, or N tokens at a time",
          "prefill"};
}

absl::StatusOr<ForwardMode> ReadForwardMode(const CommandLine& line) {
  const std::string text = line.Text("mode");
  if (text == "prefill") return ForwardMode{};
  if (text == "step") return ForwardMode{.step = true};
  const std::string chunked = "chunked=";
  if (text.starts_with(chunked)) {
    const std::string digits = text.substr(chunked.size());
    const bool plain = !digits.empty() && digits.size() <= 9 &&
                       digits.find_first_not_of("0123456789") == std::string::npos;
    if (plain && std::stoll(digits) > 0) return ForwardMode{.chunk = std::stoll(digits)};
  }
  return Usage("--mode is '" + text + "', expected prefill, step or chunked=N with N >= 1");
}

absl::Status RefuseForwardMode(const CommandLine& line) {
  const std::string text = line.Text("mode");
  if (text == "prefill") return absl::OkStatus();
  return Usage("--mode is '" + text + "', but an encoder takes its input as a whole");
}

absl::StatusOr<InputIds> ReadInputIds(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(path));
  HIPPODROME_ASSIGN_OR_RETURN(IntegerMatrix ids, ReadIntegerMatrix(*file, "input_ids"));
  return InputIds{.batch = ids.rows, .length = ids.cols, .ids = std::move(ids.values)};
}

}  // namespace hippodrome
