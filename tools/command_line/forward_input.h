// What the commands that run given token ids through a model read.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_FORWARD_INPUT_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_FORWARD_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/passes/forward.h"
#include "tools/command_line/command_line.h"

namespace hippodrome {

// Safetensors to read and to write.
Option InputOption();
Option OutputOption();

// How a language model takes its input.
Option ModeOption();
absl::StatusOr<ForwardMode> ReadForwardMode(const CommandLine& line);
// For an encoder, which takes its input as a whole: a usage error for any mode but prefill.
absl::Status RefuseForwardMode(const CommandLine& line);

struct InputIds {
  int64_t batch = 0;
  int64_t length = 0;
  std::vector<int32_t> ids;  // [batch, length]
};

// The tensor input_ids, integers [B, L], of a safetensors file.
absl::StatusOr<InputIds> ReadInputIds(const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_FORWARD_INPUT_H_
