#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/config/bigs_config.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "engine/passes/encoder_forward.h"
#include "engine/passes/forward.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/encoder_input.h"
#include "tools/command_line/forward_input.h"
#include "tools/command_line/token_ids.h"
#include "tools/commands/commands.h"
#include "tools/compare/checking_backend.h"

namespace hippodrome {
namespace {

const CommandSpec kCompareSpec = {
    .name = "compare",
    .summary = "Checks a device against the CPU, operation by operation.",
    .usage = {"--model DIR --input FILE [OPTION]...", "--model DIR --prompt-ids LIST [OPTION]..."},
    .description =
        "Runs every operation on the device and on the CPU, from the same inputs. Prints the "
        "largest "
        "error of each in units of its tolerance, and fails at one above 1, naming the first.",
    .options = {ModelOption(),
                InputOption(),
                {"prompt-ids", "LIST", "token ids to take instead of a file, as 1,2,3"},
                ModeOption(),
                WeightsOption(),
                DeviceOption("cuda"),
                ThreadsOption(),
                PinOption(),
                NumaNodeOption()}};

absl::StatusOr<InputIds> ReadIds(const CommandLine& line) {
  if (line.Has("input")) return ReadInputIds(line.Text("input"));
  InputIds input{.batch = 1};
  HIPPODROME_ASSIGN_OR_RETURN(input.ids, ParseTokenIds(line.Text("prompt-ids")));
  input.length = static_cast<int64_t>(input.ids.size());
  return input;
}

absl::StatusOr<EncoderInputs> ReadEncoderIds(const CommandLine& line) {
  if (line.Has("input")) return ReadEncoderInputs(line.Text("input"));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<int32_t> ids, ParseTokenIds(line.Text("prompt-ids")));
  return OneEncoderInput(std::move(ids));
}

absl::Status Report(const CheckingBackend& backend) {
  std::printf("%s, %lld operations\n", backend.name().c_str(),
              static_cast<long long>(backend.operations()));
  for (const auto& [operation, error] : backend.worst()) {
    std::printf("  %-20s %.3g\n", operation.c_str(), error);
  }
  if (!backend.first_difference()) return absl::OkStatus();
  return Internal("first difference at " + ToString(*backend.first_difference()));
}

absl::Status RunLanguageModel(const CommandLine& line, const std::string& directory,
                              Backend& backend) {
  HIPPODROME_ASSIGN_OR_RETURN(const InputIds input, ReadIds(line));
  HIPPODROME_ASSIGN_OR_RETURN(const ForwardMode mode, ReadForwardMode(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedDecoder loaded,
                              LoadDecoderDirectory(backend, directory, weights));
  for (int64_t row = 0; row < input.batch; ++row) {
    const auto ids = std::span(input.ids).subspan(row * input.length, input.length);
    HIPPODROME_RETURN_IF_ERROR(
        Forward(backend, *loaded.model, ids, mode, [](int64_t, std::span<const float>) {}));
  }
  return absl::OkStatus();
}

absl::Status RunEncoder(const CommandLine& line, const std::string& directory, Backend& backend) {
  HIPPODROME_RETURN_IF_ERROR(RefuseForwardMode(line));
  HIPPODROME_ASSIGN_OR_RETURN(const EncoderInputs inputs, ReadEncoderIds(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedEncoder loaded,
                              LoadEncoderDirectory(backend, directory, weights));
  return EncoderForward(backend, *loaded.model, inputs, [](std::span<const float>) {});
}

absl::Status Compare(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  if (line.Has("input") == line.Has("prompt-ids")) {
    return Usage("expected either --input or --prompt-ids");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(directory));
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(const auto actual, OpenBackend(device, cpu));
  const auto expected = MakeCpuBackend(cpu);
  CheckingBackend backend(*expected, *actual);
  const auto run = family == ModelFamily::kBigs ? RunEncoder : RunLanguageModel;
  HIPPODROME_RETURN_IF_ERROR(run(line, directory, backend));
  return Report(backend);
}

}  // namespace

int CompareCommand(int argc, char** argv) { return RunCommand(argc, argv, kCompareSpec, Compare); }

}  // namespace hippodrome
