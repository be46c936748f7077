#include "tools/forward_input.h"

#include "engine/checkpoint/safetensors.h"
#include "engine/status.h"

namespace hippodrome {

absl::StatusOr<ForwardMode> ReadForwardMode(const CommandLine& line) {
  const std::string text = line.Text("mode", "prefill");
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

absl::StatusOr<InputIds> ReadInputIds(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(path));
  const TensorView* tensor = file->Find("input_ids");
  if (tensor == nullptr) return NotFound(path + ": there is no tensor input_ids");
  if (tensor->shape.size() != 2) {
    return InvalidArgument(path + ": input_ids has " + std::to_string(tensor->shape.size()) +
                           " dimensions, expected [B, L]");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int64_t> values, ToIntegers(*tensor));
  InputIds input{.batch = tensor->shape[0], .length = tensor->shape[1]};
  for (const int64_t value : values) {
    if (value < 0 || value > INT32_MAX) {
      return InvalidArgument(path + ": input_ids holds " + std::to_string(value) +
                             ", which is not a token id");
    }
    input.ids.push_back(static_cast<int32_t>(value));
  }
  return input;
}

}  // namespace hippodrome
