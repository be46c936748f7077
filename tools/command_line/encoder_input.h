// What the commands that run given token ids through an encoder read.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_ENCODER_INPUT_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_ENCODER_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/passes/encoder_forward.h"

namespace hippodrome {

// The tensors input_ids and, where they are, token_type_ids (else 0) and attention_mask (else 1) of
// a safetensors file: integers, all of the shape [B, L] of the first. Errors name file and tensor;
// what a model has to say to the values is left to EncoderForward().
absl::StatusOr<EncoderInputs> ReadEncoderInputs(const std::string& path);

// One sequence of `ids`, all of type 0 and unmasked.
EncoderInputs OneEncoderInput(std::vector<int32_t> ids);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_ENCODER_INPUT_H_
