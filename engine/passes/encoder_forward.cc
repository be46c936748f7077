#include "engine/passes/encoder_forward.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/base/check_range.h"
#include "engine/base/status.h"
#include "engine/passes/encoder_pass.h"

namespace hippodrome {
namespace {

// Tokens that go together, unless a single sequence is longer.
constexpr int64_t kRowsTogether = 2048;

absl::Status CheckValues(const char* name, std::span<const int32_t> values, int64_t expected,
                         int64_t limit) {
  if (static_cast<int64_t>(values.size()) != expected) {
    return InvalidArgument(std::string(name) + " has " + std::to_string(values.size()) +
                           " values, expected " + std::to_string(expected));
  }
  return CheckRange(name, values, limit);
}

absl::Status CheckMask(const EncoderInputs& inputs) {
  for (int64_t b = 0; b < inputs.batch; ++b) {
    const auto row = inputs.mask.begin() + b * inputs.length;
    if (std::count(row, row + inputs.length, 1) > 0) continue;
    return InvalidArgument("attention_mask: sequence " + std::to_string(b) +
                           " has no unmasked token to pool");
  }
  return absl::OkStatus();
}

absl::Status Validate(const BigsConfig& config, const EncoderInputs& inputs) {
  if (config.head == EncoderHead::kNone) {
    return FailedPrecondition("the model has no head: it gives embeddings only");
  }
  HIPPODROME_RETURN_IF_ERROR(CheckEncoderInputs(config, inputs));
  if (AnswersForTokens(config.head) || config.pool_padding) return absl::OkStatus();
  return CheckMask(inputs);
}

// In blocks, since the logits of a large vocabulary take a hundred times the room of the tokens.
void EmitTokens(EncoderPass& pass, int64_t tokens, int64_t columns, const EncoderSink& sink) {
  constexpr int64_t kBlock = 256;
  std::vector<int32_t> rows;
  std::vector<float> logits;
  for (int64_t first = 0; first < tokens; first += kBlock) {
    rows.resize(std::min(kBlock, tokens - first));
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(first));
    logits.resize(rows.size() * columns);
    pass.TokenLogits(rows, logits);
    sink(logits);
  }
}

}  // namespace

absl::Status CheckEncoderInputs(const BigsConfig& config, const EncoderInputs& inputs) {
  if (inputs.batch < 1 || inputs.length < 1) return InvalidArgument("input without tokens");
  if (inputs.length > config.max_position_embeddings) {
    return absl::OutOfRangeError("an input of " + std::to_string(inputs.length) +
                                 " tokens exceeds the model's " +
                                 std::to_string(config.max_position_embeddings) + " positions");
  }
  const int64_t size = inputs.batch * inputs.length;
  HIPPODROME_RETURN_IF_ERROR(CheckValues("input_ids", inputs.ids, size, config.vocab_size));
  HIPPODROME_RETURN_IF_ERROR(
      CheckValues("token_type_ids", inputs.types, size, config.type_vocab_size));
  return CheckValues("attention_mask", inputs.mask, size, 2);
}

absl::Status EncoderForward(Backend& backend, const Bigs& model, const EncoderInputs& inputs,
                            const EncoderSink& sink) {
  const BigsConfig& config = model.config();
  HIPPODROME_RETURN_IF_ERROR(Validate(config, inputs));
  const int64_t length = inputs.length;
  const int64_t together = std::clamp<int64_t>(kRowsTogether / length, 1, inputs.batch);
  EncoderPass pass(backend, model, together * length);
  const int64_t columns = LogitsPerAnswer(config);
  for (int64_t first = 0; first < inputs.batch; first += together) {
    const int64_t sequences = std::min(together, inputs.batch - first);
    const auto part = [&](const std::vector<int32_t>& values) {
      return std::span(values).subspan(first * length, sequences * length);
    };
    pass.Run({.sequences = sequences,
              .length = length,
              .ids = part(inputs.ids),
              .types = part(inputs.types),
              .mask = part(inputs.mask)});
    if (AnswersForTokens(config.head)) {
      EmitTokens(pass, sequences * length, columns, sink);
    } else {
      std::vector<float> logits(sequences * columns);
      pass.SequenceLogits(logits);
      sink(logits);
    }
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
