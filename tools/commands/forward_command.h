// The logits of an encoder as a file.
#ifndef HIPPODROME_TOOLS_COMMANDS_FORWARD_COMMAND_H_
#define HIPPODROME_TOOLS_COMMANDS_FORWARD_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "engine/passes/encoder_forward.h"

namespace hippodrome {

// Writes what the head of `model` answers to `inputs` to the safetensors file `path`, F32:
//   masked LM:                logits [B, L, V]
//   token classification:     logits [B, L, labels]
//   question answering:       start_logits, end_logits [B, L]
//   sequence classification:  logits [B, labels]
//   multiple choice:          logits [B]
// Errors: of EncoderForward() and of writing; then there is no file.
absl::Status WriteEncoderLogits(Backend& backend, const Bigs& model, const EncoderInputs& inputs,
                                const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMANDS_FORWARD_COMMAND_H_
