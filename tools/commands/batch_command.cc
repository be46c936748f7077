#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "server/batches/line_reader.h"
#include "server/handlers/generation_numbers.h"
#include "server/load_model.h"
#include "server/version.h"
#include "tools/batch/batch_job.h"
#include "tools/batch/batch_output.h"
#include "tools/batch/batch_task.h"
#include "tools/batch/run_batch.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/stop_signal.h"
#include "tools/commands/commands.h"
#include "tools/commands/serve_options.h"
#include "tools/mpi/collectives.h"
#include "tools/mpi/open_communicator.h"

namespace hippodrome {
namespace {

// As a body of HTTP.
constexpr int64_t kMostLineBytes = HttpOptions().max_body_bytes;
// Decoders run a few dozen sequences at once, so that fewer lines keep them busy.
constexpr int64_t kDecoderWindow = 512;

std::string OptionName(const ParameterRange& range) {
  std::string name = range.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

const Option& ServeOption(const std::string& name) {
  return *std::find_if(kServeSpec.options.begin(), kServeSpec.options.end(),
                       [&](const Option& option) { return option.name == name; });
}

CommandSpec MakeSpec() {
  CommandSpec spec = {
      .name = "batch",
      .summary = "Answers each line of a file by a model.",
      .usage = {"--task TASK --model DIR --input FILE --output FILE [OPTION]..."},
      .description =
          "A line is a JSON object: the body of a request to the server, with \"id\" if you like. "
          "The answers are lines in the same order, {\"id\", \"result\"} or {\"id\", \"error\"}; "
          "embeddings may be rows of a matrix instead, where the output ends in .npy or "
          ".safetensors. docs/batch.md has the fields.\n"
          "The same command goes on where a run was killed: nothing is lost or there twice, and "
          "the output is the same, byte for byte. Lines that cannot be answered are counted at "
          "the end, and do not change the exit status.",
      .arguments = {},
      .options = {
          {"task", kBatchTasks, "what is done with each line"},
          {"model", "[NAME=]DIR", "a model directory; NAME is its last component by default"},
          {"input", "FILE|-", "lines of JSON, packed with gzip or not; -: standard input"},
          {"output", "FILE|-",
           "where the answers go; beside it FILE.job says of which job they are; -: standard "
           "output, where no run goes on"},
          {"share", "I/N",
           "only the I-th of N parts of the input, I from 0; the output is "
           "FILE.part-0000I-of-0000N, and the last of them to be complete writes "
           "FILE.manifest.json (default: all)"},
          {"truncate", "", "of encoders: cut texts that are too long"},
          {"seed", "N", "of random numbers, beside what stands in a line", "0"},
      }};
  for (const GenerationNumber& number : kGenerationNumbers) {
    const ParameterRange& range = *number.range;
    spec.options.push_back({OptionName(range), range.whole ? "N" : "X",
                            fmt::format("of texts: {}", range.about),
                            range.usual ? fmt::format("{}", *range.usual) : ""});
  }
  for (const char* name : kLoadOptions) spec.options.push_back(ServeOption(name));
  return spec;
}

const CommandSpec& Spec() {
  static const CommandSpec spec = MakeSpec();  // behind those that it takes options of
  return spec;
}

struct JobPlan {
  BatchTaskOptions task;
  std::string task_name;
  LoadOptions load;
  ModelSource model;
  std::string input, output;
  BatchShare share;
  std::optional<MatrixFormat> matrix;

  bool resumable() const { return output != "-"; }
};

absl::StatusOr<BatchShare> ReadShare(const CommandLine& line) {
  if (!line.Has("share")) return BatchShare();
  const std::string text = line.Text("share");
  const char* end = text.data() + text.size();
  BatchShare share;
  const auto index = std::from_chars(text.data(), end, share.index);
  if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
    const auto count = std::from_chars(index.ptr + 1, end, share.count);
    const bool right = count.ec == std::errc() && count.ptr == end && share.count <= 100000;
    if (right && share.index >= 0 && share.index < share.count) return share;
  }
  return Usage("--share is '" + text + "', expected I/N with I from 0 to N - 1");
}

// The options that stand for fields of lines.
absl::Status ReadDefaults(const CommandLine& line, BatchTaskOptions& task) {
  const bool generates = task.task == BatchTask::kGenerate;
  for (const GenerationNumber& number : kGenerationNumbers) {
    const ParameterRange& range = *number.range;
    const std::string name = OptionName(range);
    if (!line.Has(name)) continue;
    if (!generates) return Usage("--" + name + " is of --task generate");
    HIPPODROME_ASSIGN_OR_RETURN(const double value, line.Number(name));
    const absl::Status status = CheckParameter(range, static_cast<float>(value));
    if (!status.ok()) return Usage("--" + name + ": " + Message(status));
    if (range.whole) {
      HIPPODROME_ASSIGN_OR_RETURN(task.defaults[range.name], line.Integer(name, 0, INT64_MAX));
    } else {
      task.defaults[range.name] = value;
    }
  }
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t seed, line.Integer("seed", 0, INT64_MAX));
  task.seed = static_cast<uint64_t>(seed);
  if (!line.Has("truncate")) return absl::OkStatus();
  const bool cuts = task.task == BatchTask::kClassify || task.task == BatchTask::kEmbed ||
                    task.task == BatchTask::kFillMask || task.task == BatchTask::kTag;
  if (!cuts) return Usage("--truncate is of --task classify, embed, fill-mask and tag");
  task.defaults["truncate"] = true;
  return absl::OkStatus();
}

absl::Status ReadFiles(const CommandLine& line, JobPlan& plan) {
  HIPPODROME_ASSIGN_OR_RETURN(plan.input, line.Required("input"));
  HIPPODROME_ASSIGN_OR_RETURN(plan.output, line.Required("output"));
  HIPPODROME_ASSIGN_OR_RETURN(plan.share, ReadShare(line));
  if (plan.input == "-" && plan.output != "-") {
    return Usage("--input - can be read once only: use --output -");
  }
  if (plan.output == "-" && plan.share.count > 1) return Usage("--share needs a file to write to");
  if (plan.output.ends_with(".npy")) plan.matrix = MatrixFormat::kNpy;
  if (plan.output.ends_with(".safetensors")) plan.matrix = MatrixFormat::kSafetensors;
  if (plan.output.ends_with(".gz")) return Usage("--output is written as it is, not packed");
  plan.task.rows = plan.matrix.has_value();
  if (!plan.task.rows || plan.task.task == BatchTask::kEmbed) return absl::OkStatus();
  return Usage("--output is a matrix, which --task embed alone gives");
}

absl::StatusOr<JobPlan> ReadPlan(const CommandLine& line) {
  JobPlan plan;
  HIPPODROME_RETURN_IF_ERROR(line.Required("task").status());
  HIPPODROME_ASSIGN_OR_RETURN(plan.task_name, line.Choice("task"));
  plan.task.task = ParseBatchTask(plan.task_name);
  HIPPODROME_ASSIGN_OR_RETURN(const std::string model, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(plan.model, ParseModelSource("--model", model));
  HIPPODROME_RETURN_IF_ERROR(ReadFiles(line, plan));
  HIPPODROME_RETURN_IF_ERROR(ReadDefaults(line, plan.task));
  HIPPODROME_ASSIGN_OR_RETURN(plan.load, ReadLoadOptions(line));
  return plan;
}

// All that decides about the bytes of the output, but for which share it is.
absl::StatusOr<nlohmann::json> Describe(const CommandLine& line, const JobPlan& plan) {
  struct stat input = {};
  if (stat(plan.input.c_str(), &input) != 0) return NotFound(plan.input + ": it cannot be read");
  nlohmann::json job = {
      {"task", plan.task_name},
      {"model", FingerprintModel(plan.model.directory)},
      {"input_bytes", input.st_size},
      {"input_time", fmt::format("{}.{:09}", input.st_mtim.tv_sec, input.st_mtim.tv_nsec)},
      {"shares", plan.share.count},
      {"defaults", plan.task.defaults},
      {"seed", plan.task.seed},
      {"version", Version()}};
  for (const char* name : {"device", "weights", "pad-to", "attention-window", "h3-state"}) {
    job[name] = line.Text(name);
  }
  return job;
}

// One model, as the server has it, and nobody else who asks it.
class LoneModel {
 public:
  static absl::StatusOr<std::unique_ptr<LoneModel>> Load(const JobPlan& plan) {
    HIPPODROME_ASSIGN_OR_RETURN(ModelParts parts,
                                LoadModel(plan.model.name, plan.model.directory, plan.load));
    return std::unique_ptr<LoneModel>(new LoneModel(std::move(parts)));
  }

  Handlers& handlers() { return handlers_; }
  const v1::Model& info() { return handlers_.models().all()->front()->info(); }

 private:
  explicit LoneModel(ModelParts parts) : handlers_(Serve(std::move(parts)), RequestLimits()) {}

  // What bounds a client of many does not bound the only one; RunBatch() has a window.
  std::vector<std::unique_ptr<ServedModel>> Serve(ModelParts parts) {
    constexpr int64_t kMostInputs = 1 << 16;
    BatcherOptions generation{
        .max_queue = kMostInputs, .max_client_share = 1, .max_unread_tokens = int64_t{1} << 40};
    EncodingOptions encoding{.max_queue = kMostInputs, .max_client_share = 1};
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(std::move(parts), generation, encoding, metrics_));
    return models;
  }

  Metrics metrics_;
  Handlers handlers_;
};

absl::StatusOr<std::unique_ptr<BatchOutput>> OpenOutput(const JobPlan& plan,
                                                        const std::string& part,
                                                        int64_t embedding_size) {
  return plan.matrix ? OpenMatrix(part, *plan.matrix, embedding_size) : OpenJsonLines(part);
}

int64_t FileSize(const std::string& path) {
  struct stat file = {};
  return stat(path.c_str(), &file) == 0 ? static_cast<int64_t>(file.st_size) : 0;
}

// The rate of this run, and how long the rest takes at it.
class BatchMeter {
 public:
  BatchMeter(const std::string& what, const LineReader& lines) : bar_(what), lines_(lines) {}

  void Update(const BatchCounts& counts, int64_t read) {
    if (read == 0) return;
    // The lines that were read and are not done are as long as the others.
    const LineReader::Progress bytes = lines_.progress();
    const double done = static_cast<double>(bytes.done) * static_cast<double>(counts.lines) /
                        static_cast<double>(read);
    if (first_lines_ < 0) {
      first_lines_ = counts.lines;
      first_done_ = done;
    }
    if (counts.lines == first_lines_) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const double left = seconds * (static_cast<double>(bytes.total) - done) / (done - first_done_);
    const double rate = static_cast<double>(counts.lines - first_lines_) / seconds;
    bar_.Update(static_cast<int64_t>(done), bytes.total,
                fmt::format("{:.0f} lines/s, {:.0f} s left", rate, left));
  }

 private:
  using Clock = std::chrono::steady_clock;

  Progress bar_;
  const LineReader& lines_;
  const Clock::time_point start_ = Clock::now();
  int64_t first_lines_ = -1;
  double first_done_ = 0;
};

void Say(const std::string& what, const BatchCounts& counts) {
  std::fprintf(stderr, "hippodrome: %s: %lld lines, %lld errors\n", what.c_str(),
               static_cast<long long>(counts.lines), static_cast<long long>(counts.errors));
}

// Answers the lines of the share that `output` lacks. False where a signal came before the end.
absl::StatusOr<bool> AnswerLines(const JobPlan& plan, LoneModel& model, BatchOutput& output,
                                 const std::string& part, BatchCounts& counts) {
  HIPPODROME_ASSIGN_OR_RETURN(const LineAnswerer answerer,
                              LineAnswerer::Make(model.handlers(), plan.task));
  HIPPODROME_ASSIGN_OR_RETURN(const auto lines, LineReader::Open(plan.input, kMostLineBytes));
  if (plan.share.count > 1) {
    HIPPODROME_RETURN_IF_ERROR(lines->TakeShare(plan.share.index, plan.share.count));
  }
  BatchWindow window;
  if (model.info().head().empty()) window.lines = kDecoderWindow;
  const StopSignal signal;
  bool stopped = false;
  BatchMeter meter(
      plan.share.count == 1 ? "batch" : "batch, share " + std::to_string(plan.share.index), *lines);
  HIPPODROME_ASSIGN_OR_RETURN(
      counts, RunBatch(
                  *lines, answerer, output, window, [&] { return stopped = signal.Received(); },
                  [&](const BatchCounts& done, int64_t read) { meter.Update(done, read); }));
  if (stopped) return false;
  HIPPODROME_RETURN_IF_ERROR(output.Finish());
  Say(part, counts);
  return true;
}

absl::Status RunShare(const JobPlan& plan, const std::string& part, const JobFile& job) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<LoneModel> model, LoneModel::Load(plan));
  HIPPODROME_ASSIGN_OR_RETURN(const auto output,
                              OpenOutput(plan, part, model->info().embedding_size()));
  if (output->found().lines > 0) Say(part + " goes on", output->found());
  BatchCounts counts;
  HIPPODROME_ASSIGN_OR_RETURN(const bool complete,
                              AnswerLines(plan, *model, *output, part, counts));
  if (!complete) {
    return Unavailable(fmt::format("stopped after {} lines{}", counts.lines,
                                   plan.resumable() ? "; the same command goes on" : ""));
  }
  if (!plan.resumable()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const std::string checksum, ChecksumFile(part));
  return job.Complete({counts, FileSize(part), checksum});
}

absl::Status RunJob(const CommandLine& line, const JobPlan& plan) {
  if (!plan.resumable()) return RunShare(plan, "-", JobFile("-", nullptr));
  HIPPODROME_ASSIGN_OR_RETURN(const nlohmann::json description, Describe(line, plan));
  const std::string part = PartPath(plan.output, plan.share);
  const JobFile job(part, description);
  HIPPODROME_ASSIGN_OR_RETURN(const bool complete, job.Begin(FileSize(part)));
  if (complete) {
    Say(part + " is complete", job.totals()->counts);
  } else {
    HIPPODROME_RETURN_IF_ERROR(RunShare(plan, part, job));
  }
  if (plan.share.count == 1) return absl::OkStatus();
  return WriteManifest(plan.output, plan.share.count, description).status();
}

// Each rank has its share of the input, and of the processors.
absl::Status TakeRank(Communicator& ranks, const CommandLine& line, JobPlan& plan) {
  HIPPODROME_RETURN_IF_ERROR(line.RefusePlacement());
  if (ranks.size() == 1) return absl::OkStatus();
  if (line.Has("share")) return Usage("--share is what the ranks of MPI have already");
  if (!plan.resumable()) return Usage("--output - is for one process: each rank writes a file");
  plan.share = {ranks.rank(), ranks.size()};
  if (plan.load.cpu.threads == 0) plan.load.cpu.threads = FindLocalRanks(ranks).processors;
  return absl::OkStatus();
}

absl::Status AnswerFile(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(JobPlan plan, ReadPlan(line));
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> ranks, OpenCommunicator());
  if (ranks == nullptr) {
    HIPPODROME_ASSIGN_OR_RETURN(plan.load.cpu, line.PlaceThreads());
    return RunJob(line, plan);
  }
  HIPPODROME_RETURN_IF_ERROR(TakeRank(*ranks, line, plan));
  return Agree(*ranks, RunJob(line, plan));  // a rank that fails does not end the others
}

}  // namespace

int BatchCommand(int argc, char** argv) { return RunCommand(argc, argv, Spec(), AnswerFile); }

}  // namespace hippodrome
