#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/one_line.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "engine/models/baselines/sequence_mixer.h"
#include "engine/models/h3/state_space.h"
#include "engine/state/state_file.h"
#include "kernels/make_backend.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/text_file.h"
#include "tools/commands/commands.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/models/bigs_presets.h"
#include "tools/limits/flops.h"
#include "tools/machine/machine_text.h"

namespace hippodrome {
namespace {

constexpr char kBertLarge[] = "bert-large";

const CommandSpec kInspectSpec = {
    .name = "inspect",
    .summary = "Describes a model directory, a tensor file, a saved state or the machine.",
    .usage = {"DIR|FILE", "--flops --length L DIR",
              "--flops --length L (--preset NAME | --config FILE)", "--machine"},
    .description =
        "Prints configuration, tensors and the bytes that a sequence takes; with --flops, the "
        "operations of a BiGS model on one input; with --machine, the processors, NUMA nodes, "
        "caches and memory that programs find here, and whether memory comes in huge pages.",
    .arguments = {{"DIR|FILE", "model directory, checkpoint as convert reads it, or state", true}},
    .options = {
        {"flops", "", "count the operations of an encoder"},
        {"length", "L", "tokens of the input"},
        {"preset", BigsPresetNames() + "|" + kBertLarge,
         "a published model's configuration, in place of DIR's"},
        {"config", "FILE", "config.json, in place of DIR's"},
        {"machine", "", "describe the machine; nothing else is given then"},
    }};

void PrintTensor(const std::string& name, const std::string& type,
                 const std::vector<int64_t>& shape) {
  std::string sizes;
  for (const int64_t size : shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  std::printf("%-64s %-5s [%s]\n", name.c_str(), type.c_str(), sizes.c_str());
}

void PrintTotal(size_t tensors, int64_t parameters, int64_t bytes) {
  std::printf("%zu tensors, %lld parameters, %lld bytes\n", tensors,
              static_cast<long long>(parameters), static_cast<long long>(bytes));
}

void PrintTensors(const SafetensorsFile& file) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    PrintTensor(name, Name(tensor.dtype), tensor.shape);
    bytes += static_cast<int64_t>(tensor.data.size());
  }
  PrintTotal(file.tensors().size(), CountParameters(file), bytes);
}

// What shares its storage with an earlier tensor (a tied head) is no parameter of its own.
bool IsRepeated(const CheckpointSource& source, size_t index) {
  for (size_t i = 0; i < index; ++i) {
    if (source.tensors()[i].elements == source.tensors()[index].elements && source.Same(i, index)) {
      return true;
    }
  }
  return false;
}

void PrintSource(const CheckpointSource& source) {
  int64_t parameters = 0;
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    const SourceTensor& tensor = source.tensors()[i];
    PrintTensor(tensor.name, tensor.type, tensor.shape);
    if (!IsRepeated(source, i)) parameters += static_cast<int64_t>(tensor.elements);
  }
  PrintTotal(source.tensors().size(), parameters, static_cast<int64_t>(source.file_bytes()));
}

// What one sequence takes in a layer without attention, in the CPU backend's layout; `h3_state`: as
// of GeneratorOptions.
absl::StatusOr<int64_t> LayerStateBytes(const H3Config& config, const SafetensorsFile& file,
                                        int64_t layer, DType h3_state, TrainingBackend& backend) {
  const std::string prefix = "backbone.layers." + std::to_string(layer) + ".mixer.";
  FileWeights source(file);
  if (config.mixer == DecoderMixer::kH3) {
    HIPPODROME_ASSIGN_OR_RETURN(const StateSpaceParameters ssm,
                                ReadStateSpace(source, config, prefix));
    const auto weights = backend.PrepareH3(ssm.View(config), DType::kF32);
    return backend.NewH3State(*weights, 1, h3_state)->bytes_per_slot();
  }
  const WeightsReader reader(source, backend, DType::kF32);
  HIPPODROME_ASSIGN_OR_RETURN(const SequenceMixer mixer, LoadSequenceMixer(reader, config, prefix));
  return std::visit([&](const auto& m) { return m.NewState(backend, 1)->bytes_per_slot(); }, mixer);
}

// What one sequence takes in the CPU backend's layout.
absl::Status PrintStateSizes(const H3Config& config, const SafetensorsFile& file) {
  const auto backend = MakeCpuBackend({.threads = 1});
  int64_t recurrent = 0;  // the first layer that is
  while (recurrent < config.n_layer && config.IsAttention(recurrent)) ++recurrent;
  const auto state_bytes = [&](DType h3_state) -> absl::StatusOr<int64_t> {
    if (recurrent == config.n_layer) return 0;
    return LayerStateBytes(config, file, recurrent, h3_state, *backend);
  };
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t f32_bytes, state_bytes(DType::kF32));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t bf16_bytes, state_bytes(DType::kBF16));
  const auto attention = static_cast<int64_t>(config.attention_layers.size());
  int64_t token_bytes = 0;
  if (attention > 0) {
    const AttentionShape shape{.heads = config.attention_heads,
                               .head_dim = config.d_model / config.attention_heads};
    HIPPODROME_ASSIGN_OR_RETURN(const DType stored,
                                StoredWeights(file, "backbone.embeddings.word_embeddings.weight"));
    token_bytes = attention * backend->NewKeyValuePages(shape, 1, 1, stored)->bytes_per_page();
  }
  const auto all = [&](int64_t of_layer) { return (config.n_layer - attention) * of_layer; };
  const std::string half = bf16_bytes == f32_bytes
                               ? ""
                               : " (" + std::to_string(all(bf16_bytes)) + " with --h3-state bf16)";
  std::printf("recurrent state: %lld bytes per sequence, whatever its length%s\n",
              static_cast<long long>(all(f32_bytes)), half.c_str());
  std::printf("key/value rows: %lld bytes per token\n", static_cast<long long>(token_bytes));
  return absl::OkStatus();
}

absl::Status InspectH3(const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, ReadH3Config(directory));
  HIPPODROME_ASSIGN_OR_RETURN(const auto file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  std::printf("%s\n", ToJson(config).c_str());
  PrintTensors(*file);
  return PrintStateSizes(config, *file);
}

absl::Status InspectBigs(const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadBigsConfig(directory));
  HIPPODROME_ASSIGN_OR_RETURN(const auto file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  std::printf("%s\n", ToJson(config).c_str());
  PrintTensors(*file);
  std::printf("an encoder: no sequence has a state\n");
  return absl::OkStatus();
}

bool IsStateFile(const std::string& path) {
  const auto file = SafetensorsFile::Open(path);
  return file.ok() && HasStateFormat((*file)->metadata());
}

absl::Status InspectState(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string bytes, ReadSmallFile(path, SIZE_MAX));
  const auto summary = SummarizeStateFile(bytes);
  if (!summary.ok()) return InvalidArgument(path + ": " + Message(summary.status()));
  std::printf("a saved state%s\nmodel %s\narithmetic %s\nposition %lld\n",
              summary->lossy ? ", rounded to bf16" : "", OneLine(summary->model).c_str(),
              OneLine(summary->arithmetic).c_str(), static_cast<long long>(summary->position));
  if (summary->first_row > 0) {
    std::printf("keys and values from position %lld on\n",
                static_cast<long long>(summary->first_row));
  }
  if (summary->last_token)
    std::printf("last token %d, not in the state yet\n", *summary->last_token);
  if (!summary->checkpoints.empty()) {
    std::printf("checkpoints at");
    for (const int64_t position : summary->checkpoints) {
      std::printf(" %lld", static_cast<long long>(position));
    }
    std::printf("\n");
  }
  if (!summary->pending_text.empty())
    std::printf("pending text of %zu bytes\n", summary->pending_text.size());
  std::printf("seed %llu\ncreated %lld\nchecksum %s, as it should be\nsignature %s\n",
              static_cast<unsigned long long>(summary->seed),
              static_cast<long long>(summary->created), summary->checksum.c_str(),
              summary->signature.empty() ? "none" : OneLine(summary->signature).c_str());
  for (const TensorSpec& tensor : summary->tensors) {
    PrintTensor(OneLine(tensor.name), Name(tensor.dtype), tensor.shape);
  }
  std::printf("%zu tensors, %zu bytes\n", summary->tensors.size(), bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<BigsConfig> ReadEncoderConfig(const CommandLine& line) {
  if (line.Has("config")) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(line.Text("config")));
    return ParseBigsConfig(text);
  }
  if (!line.Has("preset")) return ReadBigsConfig(line.positional()[0]);
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, line.Choice("preset"));
  return name == kBertLarge ? BertLarge() : BigsPreset(name);
}

void PrintFlops(const char* what, double flops) {
  std::printf("%-16s %.3e (%s)\n", what, flops, PaperNotation(flops).c_str());
}

// Of DIR, --preset and --config there is one.
absl::Status CheckSources(const CommandLine& line) {
  const size_t sources =
      line.positional().size() + (line.Has("preset") ? 1 : 0) + (line.Has("config") ? 1 : 0);
  if (sources == 1) return absl::OkStatus();
  return Usage(line.Has("flops") ? "expected one of DIR, --preset and --config"
                                 : "expected one DIR or FILE");
}

absl::Status InspectFlops(const CommandLine& line) {
  constexpr int64_t kLongest = 1 << 20;
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t length, line.Integer("length", 1, kLongest));
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadEncoderConfig(line));
  const EncoderFlops flops = CountFlops(config, length);
  PrintFlops("matrix products", flops.matrices);
  PrintFlops(config.routing == EncoderRouting::kSsm ? "convolution" : "attention", flops.mixing);
  PrintFlops("total", flops.total());
  return absl::OkStatus();
}

absl::Status InspectMachine(const CommandLine& line) {
  for (const char* option : {"flops", "length", "preset", "config"}) {
    if (line.Has(option)) return Usage(std::string("--machine does not go with --") + option);
  }
  if (!line.positional().empty()) {
    return Usage("--machine takes no DIR or FILE, got '" + line.positional()[0] + "'");
  }
  std::fputs(MachineText().c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Inspect(const CommandLine& line) {
  if (line.Has("machine")) return InspectMachine(line);
  HIPPODROME_RETURN_IF_ERROR(CheckSources(line));
  if (line.Has("flops")) return InspectFlops(line);
  for (const char* option : {"length", "preset", "config"}) {
    if (line.Has(option)) return Usage(std::string("--") + option + " is for --flops");
  }
  const std::string& path = line.positional()[0];
  if (!std::filesystem::is_directory(path)) {
    if (IsStateFile(path)) return InspectState(path);
    HIPPODROME_ASSIGN_OR_RETURN(const auto source, OpenCheckpoint(path));
    PrintSource(*source);
    return absl::OkStatus();
  }
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(path));
  return family == ModelFamily::kBigs ? InspectBigs(path) : InspectH3(path);
}

}  // namespace

int InspectCommand(int argc, char** argv) { return RunCommand(argc, argv, kInspectSpec, Inspect); }

}  // namespace hippodrome
