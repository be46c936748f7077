#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "tools/bench/bench_device_kernels.h"
#include "tools/bench/bench_encode.h"
#include "tools/bench/bench_generate.h"
#include "tools/bench/bench_kernels.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/bench_serve.h"
#include "tools/bench/bench_table7.h"
#include "tools/bench/bench_train.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/text_file.h"
#include "tools/command_line/token_ids.h"
#include "tools/commands/commands.h"
#include "tools/convert/models/bigs_presets.h"
#include "tools/convert/models/h3_presets.h"
#include "tools/limits/device_ceilings.h"
#include "tools/limits/machine.h"

namespace hippodrome {
namespace {

const CommandSpec kBenchSpec = {
    .usage =
        "usage: hippodrome bench generate (--preset NAME | --config FILE) [--weights bf16|f32]\n"
        "         [--prompt 512] [--batch 1,32] [--repeats 3] [--device auto|cpu|cuda]\n"
        "         [--threads N] [--json FILE]\n"
        "       hippodrome bench generate --table7 [--preset h3-1.3b | --config FILE]\n"
        "         [--prompt 512,1024,1536] [--batch 64] [--tokens 128] [--repeats 3] ...\n"
        "       hippodrome bench encode (--preset NAME | --config FILE) [--weights bf16|f32]\n"
        "         [--length 512,4096] [--batch 1,8] [--repeats 3] [--device auto|cpu|cuda]\n"
        "         [--threads N] [--json FILE]\n"
        "       hippodrome bench train (--preset NAME | --config FILE) [--weights bf16|f32]\n"
        "         [--length 256] [--batch 16] [--micro-batch 4] [--repeats 3]\n"
        "         [--device auto|cpu|cuda] [--threads N] [--json FILE]\n"
        "       hippodrome bench kernels [--device auto|cpu|cuda] [--threads N] [--json FILE]\n"
        "       hippodrome bench serve --grpc ADDR [--model NAME] [--streams 32] [--prompt 512]\n"
        "         [--tokens 256] [--json FILE]\n"
        "Prints every figure as a fraction of what this machine allows, measured in the same\n"
        "run. Weights are random; serve measures a server that runs already; --table7 is the\n"
        "scenario of Table 7 of the H3 paper, the time of the prompts included. Of encode, the "
        "limit\n"
        "counts matrix products and weights, not the convolutions. --micro-batch: how many\n"
        "sequences train takes at a time; on a GPU, by default the whole batch.",
    .values = {"preset", "config", "weights", "prompt", "length", "batch", "repeats", "device",
               "threads", "json", "grpc", "model", "streams", "tokens", "micro-batch"},
    .switches = {"table7"},
    .positional = 1};

// Operations of the 125M shape, for the CPU.
constexpr OperationSizes kCpuSizes = {
    .d_model = 768, .heads = 12, .prompts = 1, .tokens = 512, .batch = 32};

absl::StatusOr<H3Config> ReadConfig(const CommandLine& line) {
  if (line.Has("preset") == line.Has("config")) return Usage("give either --preset or --config");
  if (line.Has("preset")) return H3Preset(line.Text("preset", ""));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(line.Text("config", "")));
  return ParseH3Config(text);
}

absl::StatusOr<BigsConfig> ReadEncoderConfig(const CommandLine& line) {
  if (line.Has("preset") == line.Has("config")) return Usage("give either --preset or --config");
  if (line.Has("preset")) return BigsPreset(line.Text("preset", ""));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(line.Text("config", "")));
  return ParseBigsConfig(text);
}

absl::StatusOr<Machine> OpenMachine(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(const int threads, line.Threads());
  return OpenMachine(device, threads);
}

// --NAME N,N,..., each in [1, most].
absl::StatusOr<std::vector<int64_t>> ReadSizes(const CommandLine& line, const std::string& name,
                                               std::vector<int64_t> fallback, int64_t most) {
  if (!line.Has(name)) return fallback;
  HIPPODROME_ASSIGN_OR_RETURN(const auto values, ParseTokenIds(line.Text(name, "")));
  for (const int64_t value : values) {
    if (value < 1 || value > most) {
      return Usage("--" + name + " takes numbers in [1, " + std::to_string(most) + "]");
    }
  }
  return std::vector<int64_t>(values.begin(), values.end());
}

constexpr int64_t kMostPrompt = 1 << 20;
constexpr int64_t kMostBatch = 4096;

absl::StatusOr<BenchReport> RunTable7(const CommandLine& line, Machine& machine) {
  Table7Benchmark benchmark;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.config, line.Has("preset") || line.Has("config")
                                                    ? ReadConfig(line)
                                                    : H3Preset("h3-1.3b"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  benchmark.weights = weights.value_or(benchmark.weights);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.prompts,
                              ReadSizes(line, "prompt", benchmark.prompts, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.batch,
                              line.Integer("batch", benchmark.batch, 1, kMostBatch));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.new_tokens,
                              line.Integer("tokens", benchmark.new_tokens, 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 3, 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  return BenchTable7(machine, benchmark);
}

absl::StatusOr<BenchReport> RunGenerate(const CommandLine& line, Machine& machine) {
  GenerateBenchmark benchmark;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.config, ReadConfig(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  benchmark.weights = weights.value_or(benchmark.weights);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.prompt, line.Integer("prompt", 512, 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 3, 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.batches,
                              ReadSizes(line, "batch", benchmark.batches, kMostBatch));
  return BenchGenerate(machine, benchmark);
}

absl::Status Generate(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(Machine machine, OpenMachine(line));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, line.Has("table7")
                                                            ? RunTable7(line, machine)
                                                            : RunGenerate(line, machine));
  return WriteReport(line, machine.name, report);
}

absl::Status Encode(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadEncoderConfig(line));
  EncodeBenchmark benchmark = DefaultEncodeBenchmark(config);
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  benchmark.weights = weights.value_or(benchmark.weights);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.lengths, ReadSizes(line, "length", benchmark.lengths,
                                                           config.max_position_embeddings));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.batches,
                              ReadSizes(line, "batch", benchmark.batches, kMostBatch));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 3, 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  HIPPODROME_ASSIGN_OR_RETURN(Machine machine, OpenMachine(line));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, BenchEncode(machine, benchmark));
  return WriteReport(line, machine.name, report);
}

absl::Status Train(const CommandLine& line) {
  TrainBenchmark benchmark;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.config, ReadConfig(line));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  if (weights.has_value()) benchmark.weights = {*weights};
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.length, line.Integer("length", 256, 1, kMostPrompt));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.batch, line.Integer("batch", 16, 1, kMostBatch));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t repeats, line.Integer("repeats", 3, 1, 1000));
  benchmark.repeats = static_cast<int>(repeats);
  HIPPODROME_ASSIGN_OR_RETURN(Machine machine, OpenMachine(line));
  // A processor's caches hold the activations of a few sequences.
  const int64_t at_a_time =
      machine.backend->name() == "cuda" ? benchmark.batch : std::min<int64_t>(4, benchmark.batch);
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.micro_batch,
                              line.Integer("micro-batch", at_a_time, 1, benchmark.batch));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchReport report, BenchTrain(machine, benchmark));
  return WriteReport(line, machine.name, report);
}

absl::Status Kernels(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const Machine machine, OpenMachine(line));
  HIPPODROME_ASSIGN_OR_RETURN(const int threads, line.Threads());
  const Ceilings ceilings = machine.measure_ceilings();
  const auto yardsticks = machine.backend->name() == "cuda" ? MakeDeviceYardsticks() : nullptr;
  std::vector<BenchResult> results = yardsticks == nullptr
                                         ? BenchKernels(ceilings, threads)
                                         : BenchGatedConvolution(*yardsticks, ceilings);
  const std::vector<BenchResult> operations = BenchOperations(
      *machine.backend, yardsticks == nullptr ? kCpuSizes : OperationSizes{}, ceilings);
  results.insert(results.end(), operations.begin(), operations.end());
  return WriteReport(line, machine.name, {.ceilings = ceilings, .results = results});
}

absl::Status Serve(const CommandLine& line) {
  ServeBenchmark benchmark;
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.address, line.Required("grpc"));
  benchmark.model = line.Text("model", "");
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.streams, line.Integer("streams", 32, 1, 1024));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.prompt, line.Integer("prompt", 512, 1, 1 << 20));
  HIPPODROME_ASSIGN_OR_RETURN(benchmark.max_tokens, line.Integer("tokens", 256, 2, 1 << 20));
  HIPPODROME_ASSIGN_OR_RETURN(const BenchResult result, BenchServe(benchmark));
  return WriteReport(line, MachineName(), {.ceilings = MeasureCeilings(0), .results = {result}});
}

absl::Status Bench(const CommandLine& line) {
  const std::string& what = line.positional()[0];
  if (what == "generate") return Generate(line);
  if (what == "encode") return Encode(line);
  if (what == "train") return Train(line);
  if (what == "kernels") return Kernels(line);
  if (what == "serve") return Serve(line);
  return Usage("unknown benchmark '" + what +
               "', expected generate, encode, train, kernels or serve");
}

}  // namespace

int BenchCommand(int argc, char** argv) { return RunCommand(argc, argv, kBenchSpec, Bench); }

}  // namespace hippodrome
