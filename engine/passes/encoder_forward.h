// Logits of given inputs as they are: what verification needs.
#ifndef HIPPODROME_ENGINE_PASSES_ENCODER_FORWARD_H_
#define HIPPODROME_ENGINE_PASSES_ENCODER_FORWARD_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine/models/bigs/bigs.h"

namespace hippodrome {

// B sequences of L tokens, padding included; all [B, L].
struct EncoderInputs {
  int64_t batch = 0;
  int64_t length = 0;
  std::vector<int32_t> ids;
  std::vector<int32_t> types;
  std::vector<int32_t> mask;  // 0 or 1
};

// Errors: kInvalidArgument for sizes that disagree and values out of range, naming the place;
// kOutOfRange for more tokens than positions.
absl::Status CheckEncoderInputs(const BigsConfig& config, const EncoderInputs& inputs);

// Receives the logits of some answers, each of LogitsPerAnswer() values: of tokens where the head
// answers for tokens, else of sequences; host f32, in order, valid during the call.
using EncoderSink = std::function<void(std::span<const float> logits)>;

// Nothing is padded or truncated. Errors: those of CheckEncoderInputs(); kInvalidArgument for a
// sequence without unmasked tokens where those are pooled; kFailedPrecondition for a model without
// a head.
absl::Status EncoderForward(Backend& backend, const Bigs& model, const EncoderInputs& inputs,
                            const EncoderSink& sink);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_ENCODER_FORWARD_H_
