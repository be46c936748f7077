#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/forward.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "engine/status.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/forward_input.h"

namespace hippodrome {
namespace {

const CommandSpec kSpec = {
    .usage =
        "usage: hippodrome forward --model DIR --input IN.safetensors --output OUT.safetensors\n"
        "  [--mode prefill|step|chunked=N] [--weights f32|bf16] [--device auto|cpu|cuda] "
        "[--threads N]\n"
        "Reads input_ids I64 [B, L]; writes logits F32 [B, L, padded vocabulary].",
    .values = {"device", "model", "input", "output", "mode", "weights", "threads"}};

absl::Status WriteLogits(Backend& backend, const HybridH3& model, const InputIds& input,
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

absl::Status RunForward(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string input_path, line.Required("input"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string output_path, line.Required("output"));
  HIPPODROME_ASSIGN_OR_RETURN(const ForwardMode mode, ReadForwardMode(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const int threads, line.Threads());
  HIPPODROME_ASSIGN_OR_RETURN(const InputIds input, ReadInputIds(input_path));
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(const auto backend, OpenBackend(device, threads));
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedModel loaded,
                              LoadModelDirectory(*backend, directory, weights));
  return WriteLogits(*backend, *loaded.model, input, mode, output_path);
}

}  // namespace

int ForwardCommand(int argc, char** argv) { return RunCommand(argc, argv, kSpec, RunForward); }

}  // namespace hippodrome
