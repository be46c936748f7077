#include "tools/commands/encoder_logits.h"

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/models/bigs/encoder_head.h"

namespace hippodrome {
namespace {

std::vector<int64_t> Shape(const BigsConfig& config, const EncoderInputs& inputs) {
  std::vector<int64_t> shape = {inputs.batch};
  if (AnswersForTokens(config.head)) shape.push_back(inputs.length);
  if (config.head != EncoderHead::kMultipleChoice) shape.push_back(LogitsPerAnswer(config));
  return shape;
}

// As they come: those of all tokens of a masked LM may be too many to keep.
absl::Status WriteLogits(Backend& backend, const Bigs& model, const EncoderInputs& inputs,
                         const std::string& path) {
  const TensorSpec spec{"logits", DType::kF32, Shape(model.config(), inputs)};
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer, SafetensorsWriter::Create(path, {spec}));
  absl::Status written;
  HIPPODROME_RETURN_IF_ERROR(
      EncoderForward(backend, model, inputs, [&](std::span<const float> logits) {
        if (written.ok()) written = writer->Append(std::as_bytes(logits));
      }));
  HIPPODROME_RETURN_IF_ERROR(written);
  return writer->Finish();
}

// Pairs come, one tensor after the other is written.
absl::Status WriteStartsAndEnds(Backend& backend, const Bigs& model, const EncoderInputs& inputs,
                                const std::string& path) {
  std::vector<float> starts, ends;
  HIPPODROME_RETURN_IF_ERROR(
      EncoderForward(backend, model, inputs, [&](std::span<const float> logits) {
        for (size_t i = 0; i < logits.size(); i += 2) {
          starts.push_back(logits[i]);
          ends.push_back(logits[i + 1]);
        }
      }));
  const std::vector<int64_t> shape = {inputs.batch, inputs.length};
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto writer, SafetensorsWriter::Create(path, {{"start_logits", DType::kF32, shape},
                                                          {"end_logits", DType::kF32, shape}}));
  HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(starts))));
  HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(ends))));
  return writer->Finish();
}

}  // namespace

absl::Status WriteEncoderLogits(Backend& backend, const Bigs& model, const EncoderInputs& inputs,
                                const std::string& path) {
  return model.config().head == EncoderHead::kQuestionAnswering
             ? WriteStartsAndEnds(backend, model, inputs, path)
             : WriteLogits(backend, model, inputs, path);
}

}  // namespace hippodrome
