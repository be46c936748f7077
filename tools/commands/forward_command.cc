#include "tools/commands/forward_command.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "engine/model_directory.h"
#include "engine/models/bigs/encoder_head.h"
#include "engine/open_backend.h"
#include "engine/passes/forward.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/encoder_input.h"
#include "tools/command_line/forward_input.h"
#include "tools/commands/commands.h"

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

const CommandSpec kForwardSpec = {
    .name = "forward",
    .summary = "Writes the logits of given token ids.",
    .usage = {"--model DIR --input FILE --output FILE [OPTION]..."},
    .description =
        "Language models: reads input_ids I64 [B, L]; writes logits F32 [B, L, padded "
        "vocabulary].\n"
        "Encoders: reads also attention_mask (else all 1) and token_type_ids (else all 0); writes "
        "logits F32 [B, L, vocabulary or labels] or [B, labels], for multiple choice [B], or "
        "start_logits and end_logits [B, L].\n"
        "Nothing is padded or truncated.",
    .options = {ModelOption(), InputOption(), OutputOption(), ModeOption(), WeightsOption(),
                DeviceOption(), ThreadsOption(), PinOption(), NumaNodeOption()}};

absl::Status WriteDecoderLogits(Backend& backend, const HybridH3& model, const InputIds& input,
                                const ForwardMode& mode, const std::string& path) {
  const TensorSpec spec{.name = "logits",
                        .dtype = DType::kF32,
                        .shape = {input.batch, input.length, model.config().padded_vocab_size}};
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer, SafetensorsWriter::Create(path, {spec}));
  absl::Status written;
  for (int64_t row = 0; row < input.batch && input.length > 0; ++row) {
    const auto ids = std::span(input.ids).subspan(row * input.length, input.length);
    HIPPODROME_RETURN_IF_ERROR(
        Forward(backend, model, ids, mode, [&](int64_t, std::span<const float> logits) {
          if (written.ok()) written = writer->Append(std::as_bytes(logits));
        }));
    HIPPODROME_RETURN_IF_ERROR(written);
  }
  return writer->Finish();
}

// What the command line says of either family.
struct ForwardFiles {
  std::string directory, input, output;
};

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  return OpenBackend(device, cpu);
}

absl::Status ForwardLanguageModel(const CommandLine& line, const ForwardFiles& files) {
  HIPPODROME_ASSIGN_OR_RETURN(const ForwardMode mode, ReadForwardMode(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const InputIds input, ReadInputIds(files.input));
  HIPPODROME_ASSIGN_OR_RETURN(const auto backend, OpenBackend(line));
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedDecoder loaded,
                              LoadDecoderDirectory(*backend, files.directory, weights));
  return WriteDecoderLogits(*backend, *loaded.model, input, mode, files.output);
}

absl::Status ForwardEncoder(const CommandLine& line, const ForwardFiles& files) {
  HIPPODROME_RETURN_IF_ERROR(RefuseForwardMode(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const EncoderInputs inputs, ReadEncoderInputs(files.input));
  HIPPODROME_ASSIGN_OR_RETURN(const auto backend, OpenBackend(line));
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedEncoder loaded,
                              LoadEncoderDirectory(*backend, files.directory, weights));
  return WriteEncoderLogits(*backend, *loaded.model, inputs, files.output);
}

absl::Status RunForward(const CommandLine& line) {
  ForwardFiles files;
  HIPPODROME_ASSIGN_OR_RETURN(files.directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(files.input, line.Required("input"));
  HIPPODROME_ASSIGN_OR_RETURN(files.output, line.Required("output"));
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(files.directory));
  return family == ModelFamily::kBigs ? ForwardEncoder(line, files)
                                      : ForwardLanguageModel(line, files);
}

}  // namespace

absl::Status WriteEncoderLogits(Backend& backend, const Bigs& model, const EncoderInputs& inputs,
                                const std::string& path) {
  return model.config().head == EncoderHead::kQuestionAnswering
             ? WriteStartsAndEnds(backend, model, inputs, path)
             : WriteLogits(backend, model, inputs, path);
}

int ForwardCommand(int argc, char** argv) {
  return RunCommand(argc, argv, kForwardSpec, RunForward);
}

}  // namespace hippodrome
