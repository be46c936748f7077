#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "tools/bench/bench_compare.h"
#include "tools/bench/bench_device_kernels.h"
#include "tools/bench/bench_encode.h"
#include "tools/bench/bench_generate.h"
#include "tools/bench/bench_kernels.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/bench_serve.h"
#include "tools/bench/bench_speculation.h"
#include "tools/bench/bench_state.h"
#include "tools/bench/bench_table7.h"
#include "tools/bench/bench_train.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/subcommand.h"
#include "tools/command_line/text_file.h"
#include "tools/command_line/token_ids.h"
#include "tools/commands/commands.h"
#include "tools/convert/models/bigs_presets.h"
#include "tools/convert/models/h3_presets.h"
#include "tools/device_model/modelled_machine.h"
#include "tools/limits/device_ceilings.h"
#include "tools/limits/machine.h"
#include "tools/limits/model_cost.h"
#include "tools/mpi/collectives.h"
#include "tools/mpi/open_communicator.h"

namespace hippodrome {
namespace {

constexpr char kTable7Preset[] = "h3-1.3b";
constexpr char kModelledDevices[] =
    "--device model:... needs no GPU: it prints what counts of our kernels predict for one.";

Option ModelledDeviceOption() {
  Option option = DeviceOption();
  option.value += "|model:a100|model:h100|model:h200";
  return option;
}
Option PresetOption(const std::string& names) {
  return {"preset", names, "a published model's configuration"};
}
Option ConfigOption() { return {"config", "FILE", "config.json, in place of --preset"}; }
Option RepeatsOption(int fallback = 3) {
  return {"repeats", "N", "rounds that are measured", std::to_string(fallback)};
}

// "f32, bf16, .."
std::string WeightsNames() {
  std::string names;
  for (const DType weights : kWeightTypes) {
    names += (names.empty() ? "" : ", ") + std::string(WeightsName(weights));
  }
  return names;
}

const CommandSpec kGenerateBenchSpec = {
    .name = "bench generate",
    .summary = "Measures prefill and decode of a language model with random weights.",
    .usage = {"(--preset NAME | --config FILE) [OPTION]...",
              "--table7 [--preset NAME | --config FILE] [OPTION]..."},
    .description =
        "--table7 is the scenario of Table 7 of the H3 paper, the time of the prompts included. " +
        std::string(kModelledDevices),
    .options = {PresetOption(H3PresetNames()),
                ConfigOption(),
                {"table7", "", "that scenario, by default of " + std::string(kTable7Preset)},
                {"prompt", "N[,N]...",
                 "tokens of each prompt, one number without --table7 (default: " +
                     std::to_string(GenerateBenchmark().prompt) + ", with --table7 " +
                     CommaList(Table7Benchmark().prompts) + ")"},
                {"batch", "N[,N]...",
                 "sequences that run together, one number with --table7 (default: " +
                     CommaList(GenerateBenchmark().batches) + ", with --table7 " +
                     std::to_string(Table7Benchmark().batch) + ")"},
                {"tokens", "N",
                 "new tokens of each sequence of --table7 (default: " +
                     std::to_string(Table7Benchmark().new_tokens) + ")"},
                RepeatsOption(),
                WeightsOption("bf16"),
                H3StateOption(),
                ModelledDeviceOption(),
                ThreadsOption(),
                PinOption(),
                NumaNodeOption(),
                JsonOption()}};

const CommandSpec kEncodeBenchSpec = {
    .name = "bench encode",
    .summary = "Measures an encoder with random weights.",
    .usage = {"(--preset NAME | --config FILE) [OPTION]..."},
    .description = "The limit counts matrix products and weights, not the convolutions. " +
                   std::string(kModelledDevices),
    .options = {PresetOption(BigsPresetNames()),
                ConfigOption(),
                {"length", "N[,N]...",
                 "tokens of each input (default: the longest, and 512 where that is longer)"},
                {"batch", "N[,N]...",
                 "inputs that run together (default: 1,8, or 1 where they are longer than 512)"},
                RepeatsOption(),
                WeightsOption("bf16"),
                ModelledDeviceOption(),
                ThreadsOption(),
                PinOption(),
                NumaNodeOption(),
                JsonOption()}};

const std::vector<int64_t> kComparedBatches = {1, 8, 32, 64};

const CommandSpec kCompareBenchSpec = {
    .name = "bench compare",
    .summary = "Measures a model with random weights of every type, side by side.",
    .usage = {"(--preset NAME | --config FILE) [OPTION]..."},
    .description =
        "What bench generate measures of a language model, or bench encode of an encoder, with "
        "weights of every type in each round. Rates and ceilings are medians; ratios to bf16 are "
        "medians "
        "of the rounds' ratios. Bytes per token are what must be read or written at least: "
        "weights, which "
        "the tokens that are computed together share, states, keys and values.\n"
        "All models are in memory at once, with the states of all batches; where they do not fit, "
        "it says so.",
    .options = {
        PresetOption(H3PresetNames() + "|" + BigsPresetNames()),
        ConfigOption(),
        {"weights", "TYPE[,TYPE]...",
         "types of the matrices, of " + WeightsNames() + " (default: all that the device has)"},
        {"prompt", "N",
         "tokens of each prompt of a language model (default: " +
             std::to_string(GenerateBenchmark().prompt) + ")"},
        {"length", "N[,N]...", "tokens of each input of an encoder (default: as of bench encode)"},
        {"batch", "N[,N]...",
         "sequences or inputs that run together (default: " + CommaList(kComparedBatches) +
             ", of an encoder as of bench encode)"},
        RepeatsOption(CompareBenchmark().repeats),
        DeviceOption(),
        ThreadsOption(),
        PinOption(),
        NumaNodeOption(),
        JsonOption()}};

const CommandSpec kTrainBenchSpec = {
    .name = "bench train",
    .summary = "Measures a step of training a language model with random weights.",
    .usage = {"(--preset NAME | --config FILE) [OPTION]..."},
    .description =
        "Processes that mpirun or srun started learn a batch together, on processors; what one "
        "does "
        "alone on all processors that rank 0 may use (mpirun --bind-to none) is measured in turns, "
        "and scaling says what part of it, times the machines, they reach.",
    .options = {PresetOption(H3PresetNames()),
                ConfigOption(),
                {"length", "N", "tokens of each sequence", std::to_string(TrainBenchmark().length)},
                {"batch", "N", "sequences of a step", std::to_string(TrainBenchmark().batch)},
                {"micro-batch", "N", "sequences at a time (default: 4, on a GPU the whole batch)"},
                RepeatsOption(),
                {"weights", "f32|bf16", "type of the matrices (default: one after the other)"},
                DeviceOption(),
                ThreadsOption(),
                PinOption(),
                NumaNodeOption(),
                JsonOption()}};

const CommandSpec kKernelsBenchSpec = {.name = "bench kernels",
                                       .summary = "Measures the operations of a backend.",
                                       .usage = {"[OPTION]..."},
                                       .description = kModelledDevices,
                                       .options = {ModelledDeviceOption(), ThreadsOption(),
                                                   PinOption(), NumaNodeOption(), JsonOption()}};

const CommandSpec kStateBenchSpec = {
    .name = "bench state",
    .summary = "Measures forks, exports, imports and sharing of states.",
    .usage = {"(--preset NAME | --config FILE) [OPTION]..."},
    .description =
        "The limit of fork and import is the time of a copy of their bytes, that of export, write "
        "and read of one into new memory; of a hit in the prefix tree its part of the miss; of "
        "choices their context once, and they; of ragged rests as many equal ones; of cold prompts "
        "the same without the tree; of steps beside a prompt's tokens both apart.",
    .options = {
        PresetOption(H3PresetNames()),
        ConfigOption(),
        {"tokens", "N", "tokens that are in the state", std::to_string(StateBenchmark().tokens)},
        {"rest", "N", "tokens of a prompt behind them", std::to_string(StateBenchmark().rest)},
        {"repeats", "N", "rounds that are measured", std::to_string(StateBenchmark().repeats)},
        WeightsOption("bf16"),
        DeviceOption(),
        ThreadsOption(),
        PinOption(),
        NumaNodeOption(),
        JsonOption()}};

const CommandSpec kSpeculateBenchSpec = {
    .name = "bench speculate",
    .summary = "Measures what drafts are worth, on texts of a trained model.",
    .usage = {"--model DIR --prompts FILE (--preset NAME | --config FILE) [OPTION]..."},
    .description =
        "The model in DIR continues the prompts with --speculate; the steps that this took, with "
        "the drafts that came true and those that did not, are then replayed with random weights "
        "in another model's size, in turns with steps of one token. Prompts are lines of JSON: "
        "kind, prompt, and temperature.",
    .options = {ModelOption(),
                {"prompts", "FILE", "the texts to continue"},
                PresetOption(H3PresetNames()),
                ConfigOption(),
                {"tokens", "N", "new tokens of each text", "128"},
                RepeatsOption(SpeculationBenchmark().repeats),
                WeightsOption("bf16"),
                DeviceOption(),
                ThreadsOption(),
                PinOption(),
                NumaNodeOption(),
                JsonOption()}};

// Operations of the 125M shape, for the CPU.
constexpr OperationSizes kCpuSizes = {
    .d_model = 768, .heads = 12, .prompts = 1, .tokens = 512, .batch = 32};

absl::StatusOr<H3Config> ReadConfig(const CommandLine& line) {
  if (line.Has("preset") == line.Has("config")) return Usage("give either --preset or --config");
  if (line.Has("preset")) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string name, line.Choice("preset"));
    return H3Preset(name);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(line.Text("config")));
  return ParseH3Config(text);
}

absl::StatusOr<BigsConfig> ReadEncoderConfig(const CommandLine& line) {
  if (line.Has("preset") == line.Has("config")) return Usage("give either --preset or --config");
  if (line.Has("preset")) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string name, line.Choice("preset"));
    return BigsPreset(name);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(line.Text("config")));
  return ParseBigsConfig(text);
}

absl::StatusOr<Machine> OpenMachine(const CommandLine& line) {
  constexpr std::string_view kModel = "model:";
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, line.Choice("device"));
  if (name.starts_with(kModel)) return OpenModelledMachine(name.substr(kModel.size()));
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  return OpenMachine(device, cpu);
}

// --NAME N,N,..., each in [1, most].
absl::StatusOr<std::vector<int64_t>> ReadSizes(const CommandLine& line, const std::string& name,
                                               std::vector<int64_t> fallback, int64_t most) {
  if (!line.Has(name)) return fallback;
  const auto values = ParseTokenIds(line.Text(name));
  const auto within = [most](int64_t value) { return value >= 1 && value <= most; };
  if (!values.ok() || values->empty() || !std::ranges::all_of(*values, within)) {
    return Usage("--" + name + " is '" + line.Text(name) + "', expected numbers in [1, " +
                 std::to_string(most) + "], with commas between them");
  }
  return std::vector<int64_t>(values->begin(), values->end());
}

constexpr int64_t kMostPrompt = 1 << 20;
constexpr int64_t kMostBatch = 4096;

absl::StatusOr<BenchReport> RunTable7(const CommandLine& line, Machine& machine) {
  Table7Benchmark benchmark;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.config, line.Has("preset") || line.Has("config")
                                                    ? ReadConfig(line)
                                                    : H3Preset(kTable7Preset));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  benchmark.weights = weights.value_or(benchmark.weights);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.h3_state, line.H3State());
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.prompts,
                              ReadSizes(line, "prompt", benchmark.prompts, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.batch,
                              line.Integer("batch", benchmark.batch, 1, kMostBatch));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.new_tokens,
                              line.Integer("tokens", benchmark.new_tokens, 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  return BenchTable7(machine, benchmark);
}

// All but the weights; `benchmark` has the defaults.
absl::StatusOr<GenerateBenchmark> ReadGenerate(const CommandLine& line,
                                               GenerateBenchmark benchmark) {
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.config, ReadConfig(line));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.prompt,
                              line.Integer("prompt", benchmark.prompt, 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.batches,
                              ReadSizes(line, "batch", benchmark.batches, kMostBatch));
  return benchmark;
}

absl::StatusOr<BenchReport> RunGenerate(const CommandLine& line, Machine& machine) {
  HIPPODROME_ASSIGN_OR_RETURN(GenerateBenchmark benchmark, ReadGenerate(line, {}));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  benchmark.weights = weights.value_or(benchmark.weights);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.h3_state, line.H3State());
  return BenchGenerate(machine, benchmark);
}

absl::Status Generate(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(Machine machine, OpenMachine(line));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, line.Has("table7")
                                                            ? RunTable7(line, machine)
                                                            : RunGenerate(line, machine));
  return WriteReport(line, machine.name, report);
}

// All but the weights.
absl::StatusOr<EncodeBenchmark> ReadEncode(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadEncoderConfig(line));
  EncodeBenchmark benchmark = DefaultEncodeBenchmark(config);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.lengths, ReadSizes(line, "length", benchmark.lengths,
                                                           config.max_position_embeddings));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.batches,
                              ReadSizes(line, "batch", benchmark.batches, kMostBatch));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  return benchmark;
}

absl::Status Encode(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(EncodeBenchmark benchmark, ReadEncode(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  benchmark.weights = weights.value_or(benchmark.weights);
  HIPPODROME_ASSIGN_OR_RETURN(Machine machine, OpenMachine(line));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, BenchEncode(machine, benchmark));
  return WriteReport(line, machine.name, report);
}

absl::StatusOr<ModelFamily> ReadFamily(const CommandLine& line) {
  if (!line.Has("config")) {
    const std::vector<std::string> encoders = Alternatives(BigsPresetNames());
    const bool encodes = std::ranges::find(encoders, line.Text("preset")) != encoders.end();
    return encodes ? ModelFamily::kBigs : ModelFamily::kH3;
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(line.Text("config")));
  return ParseModelFamily(text);
}

// --weights TYPE,TYPE,...; none where it was not given.
absl::StatusOr<std::vector<DType>> ReadWeightTypes(const CommandLine& line) {
  std::vector<DType> types;
  std::istringstream names(line.Text("weights"));
  for (std::string name; std::getline(names, name, ',');) {
    const auto* const type = std::ranges::find(kWeightTypes, name, WeightsName);
    if (type == std::end(kWeightTypes)) {
      return Usage("--weights has '" + name + "', expected types of " + WeightsNames());
    }
    if (std::ranges::find(types, *type) != types.end()) {
      return Usage("--weights has '" + name + "' twice");
    }
    types.push_back(*type);
  }
  if (line.Has("weights") && types.empty()) {
    return Usage("--weights is empty, expected types of " + WeightsNames());
  }
  return types;
}

absl::StatusOr<CompareBenchmark> ReadComparedDecoder(const CommandLine& line) {
  if (line.Has("length")) return Usage("--length is of encoders, expected --prompt");
  HIPPODROME_ASSIGN_OR_RETURN(const GenerateBenchmark decoder,
                              ReadGenerate(line, {.batches = kComparedBatches}));
  const auto make = [decoder](Backend& backend, DType weights) {
    GenerateBenchmark benchmark = decoder;
    benchmark.weights = weights;
    return MakeTimedDecoder(backend, benchmark);
  };
  // What a prompt reads at least is every weight once.
  const auto weight_bytes = [config = decoder.config](DType weights) {
    return static_cast<int64_t>(PrefillCost(config, 1, 1, weights).bytes);
  };
  return CompareBenchmark{.make = make, .weight_bytes = weight_bytes, .repeats = decoder.repeats};
}

absl::StatusOr<CompareBenchmark> ReadComparedEncoder(const CommandLine& line) {
  if (line.Has("prompt")) return Usage("--prompt is of language models, expected --length");
  HIPPODROME_ASSIGN_OR_RETURN(const EncodeBenchmark encoder, ReadEncode(line));
  const auto make = [encoder](Backend& backend, DType weights) {
    EncodeBenchmark benchmark = encoder;
    benchmark.weights = weights;
    return MakeTimedEncoder(backend, benchmark);
  };
  const auto weight_bytes = [config = encoder.config](DType weights) {
    return static_cast<int64_t>(EncodeCost(config, 1, 1, weights).bytes);
  };
  return CompareBenchmark{.make = make, .weight_bytes = weight_bytes, .repeats = encoder.repeats};
}

absl::Status CompareWeights(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadFamily(line));
  HIPPODROME_ASSIGN_OR_RETURN(CompareBenchmark benchmark, family == ModelFamily::kBigs
                                                              ? ReadComparedEncoder(line)
                                                              : ReadComparedDecoder(line));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.weights, ReadWeightTypes(line));
  HIPPODROME_ASSIGN_OR_RETURN(Machine machine, OpenMachine(line));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, BenchCompare(machine, benchmark));
  return WriteReport(line, machine.name, report, CompareTable(report.results));
}

absl::Status Train(const CommandLine& line, Communicator* ranks) {
  if (ranks != nullptr) HIPPODROME_RETURN_IF_ERROR(line.RefusePlacement());
  TrainBenchmark benchmark;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.config, ReadConfig(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  if (weights.has_value()) benchmark.weights = {*weights};
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.length, line.Integer("length", 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.batch, line.Integer("batch", 1, kMostBatch));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  HIPPODROME_ASSIGN_OR_RETURN(
      Machine machine, ranks == nullptr ? OpenMachine(line) : OpenMachine(DeviceChoice::kCpu, {}));
  // A processor's caches hold the activations of a few sequences.
  const int64_t at_a_time =
      machine.backend->name() == "cuda" ? benchmark.batch : std::min<int64_t>(4, benchmark.batch);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.micro_batch,
                              line.Integer("micro-batch", at_a_time, 1, benchmark.batch));
  if (ranks == nullptr) {
    HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, BenchTrain(machine, benchmark));
    return WriteReport(line, machine.name, report);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const int threads, line.Threads());
  const int share = FindLocalRanks(*ranks).processors;
  HIPPODROME_ASSIGN_OR_RETURN(
      const BenchReport report,
      BenchTrainOnRanks(machine, benchmark, *ranks, threads > 0 ? threads : share));
  return Agree(*ranks,
               ranks->rank() == 0 ? WriteReport(line, machine.name, report) : absl::OkStatus());
}

absl::Status TrainOnRanks(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> ranks, OpenCommunicator());
  return RunOnRanks(std::move(ranks), [&](Communicator* all) { return Train(line, all); });
}

absl::Status Kernels(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  HIPPODROME_ASSIGN_OR_RETURN(const Machine machine, OpenMachine(line));
  const Ceilings ceilings = machine.measure_ceilings(OfRuns::kBest);
  DeviceYardsticks* const yardsticks = machine.yardsticks.get();
  std::vector<BenchResult> results = yardsticks == nullptr
                                         ? BenchKernels(ceilings, cpu)
                                         : BenchGatedConvolution(*yardsticks, ceilings);
  const std::vector<BenchResult> operations =
      BenchOperations(machine, yardsticks == nullptr ? kCpuSizes : OperationSizes{}, ceilings);
  results.insert(results.end(), operations.begin(), operations.end());
  return WriteReport(line, machine.name, {.ceilings = ceilings, .results = results});
}

absl::Status State(const CommandLine& line) {
  StateBenchmark benchmark;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.config, ReadConfig(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  benchmark.weights = weights.value_or(benchmark.weights);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.tokens, line.Integer("tokens", 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.rest, line.Integer("rest", 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  HIPPODROME_ASSIGN_OR_RETURN(Machine machine, OpenMachine(line));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, BenchState(machine, benchmark));
  return WriteReport(line, machine.name, report);
}

absl::Status Speculate(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string file, line.Required("prompts"));
  SpeculationBenchmark benchmark;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.config, ReadConfig(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  benchmark.weights = weights.value_or(benchmark.weights);
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t tokens, line.Integer("tokens", 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
  const auto prompts = ParseSpeculationPrompts(text);
  if (!prompts.ok()) return InvalidArgument(file + ", " + Message(prompts.status()));
  HIPPODROME_ASSIGN_OR_RETURN(Machine machine, OpenMachine(line));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.traces,
                              TraceSpeculation(*machine.backend, directory, *prompts, tokens));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, BenchSpeculation(machine, benchmark));
  return WriteReport(line, machine.name, report);
}

int GenerateBench(int argc, char** argv) {
  return RunCommand(argc, argv, kGenerateBenchSpec, Generate);
}
int EncodeBench(int argc, char** argv) { return RunCommand(argc, argv, kEncodeBenchSpec, Encode); }
int CompareBench(int argc, char** argv) {
  return RunCommand(argc, argv, kCompareBenchSpec, CompareWeights);
}
int TrainBench(int argc, char** argv) {
  return RunCommand(argc, argv, kTrainBenchSpec, TrainOnRanks);
}
int SpeculateBench(int argc, char** argv) {
  return RunCommand(argc, argv, kSpeculateBenchSpec, Speculate);
}
int StateBench(int argc, char** argv) { return RunCommand(argc, argv, kStateBenchSpec, State); }
int KernelsBench(int argc, char** argv) {
  return RunCommand(argc, argv, kKernelsBenchSpec, Kernels);
}

constexpr Subcommand kBenchmarks[] = {
    {"generate", "prefill and decode of a language model", GenerateBench},
    {"encode", "an encoder", EncodeBench},
    {"compare", "a model with weights of every type, side by side", CompareBench},
    {"speculate", "drafts, on texts of a trained model", SpeculateBench},
    {"train", "a step of training a language model", TrainBench},
    {"state", "forks, exports, imports and sharing of states", StateBench},
    {"kernels", "the operations of a backend", KernelsBench},
    {"serve", "a server that runs already, under load", BenchServeCommand},
};

}  // namespace

int BenchCommand(int argc, char** argv) {
  return RunSubcommand(
      {.name = "hippodrome bench",
       .summary = "Measures speed as fractions of this machine's limits, taken in the same run.",
       .commands = kBenchmarks,
       .version = ""},
      argc, argv);
}

}  // namespace hippodrome
