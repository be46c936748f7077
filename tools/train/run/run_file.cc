#include "tools/train/run/run_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/json_object.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "tools/command_line/strict_reader.h"
#include "tools/train/checkpoint/checksum.h"
#include "tools/train/run/run_file_words.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLongest = int64_t{1} << 20;  // tokens; also sequences of a batch
constexpr int64_t kMostSteps = int64_t{1} << 40;
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kMostDevices = 1024;
constexpr int64_t kMostColumns = 4096;
constexpr double kHighestRate = 100;

template <typename Value, size_t n>
Value ReadWord(StrictReader& reader, const char* name, const ConfigWord<Value> (&words)[n],
               std::optional<Value> fallback = {}) {
  const Json* member = reader.Find(name);
  if (member == nullptr && fallback.has_value()) return *fallback;
  const bool text = member != nullptr && member->is_string();
  const ConfigWord<Value>* word =
      text ? FindWord(words, member->get_ref<const std::string&>()) : nullptr;
  if (word != nullptr) return word->value;
  reader.Reject(name, ListWords(words));
  return words[0].value;
}

std::string Resolve(const std::string& path, const std::string& directory) {
  if (path.empty()) return path;
  return (std::filesystem::path(directory) / path).lexically_normal().string();
}

absl::Status ReadModel(const Json& json, const std::string& directory, StartingModel& model) {
  StrictReader reader(json, "model.");
  model.from = Resolve(reader.Text("from", ""), directory);
  if (reader.Find("config") != nullptr) model.config = reader.Object("config").dump();
  if (model.from.empty() && model.config.empty()) {
    reader.Reject("config", "an object, or model.from");
  }
  // Only a model that is there has a table to grow.
  if (!model.from.empty()) model.positions = reader.Integer("positions", {1, kLongest}, 0);
  return reader.Finish();
}

absl::Status ReadInitialization(const Json& json, Initialization& initialization) {
  StrictReader reader(json, "initialization.");
  initialization.measure =
      ReadWord(reader, "measure", kMeasureWords, std::optional<std::string_view>("diag-lin"));
  initialization.range = reader.Positive("range", 1, initialization.range);
  initialization.scaling =
      ReadWord(reader, "scaling", kScalingWords, std::optional<std::string_view>("hippo"));
  return reader.Finish();
}

std::optional<DataColumn> ReadColumn(StrictReader& reader, const char* name, bool header) {
  const Json* value = reader.Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return DataColumn(reader.Integer(name, {0, kMostColumns}));
  if (!header) reader.Reject(name, "an integer, or data.header to be true");
  return DataColumn(value->get<std::string>());
}

absl::Status ReadColumns(const Json& json, DataFiles& data) {
  StrictReader reader(json, "data.columns.");
  data.text = ReadColumn(reader, "text", data.header);
  data.pair = ReadColumn(reader, "pair", data.header);
  data.label = ReadColumn(reader, "label", data.header);
  return reader.Finish();
}

bool HasColumns(Objective objective) {
  return objective == Objective::kClassification || objective == Objective::kRegression ||
         objective == Objective::kTokenClassification;
}

std::vector<std::string> ReadFiles(StrictReader& reader, const char* name,
                                   const std::string& directory) {
  std::vector<std::string> files = reader.TextOrTexts(name);
  for (std::string& file : files) file = Resolve(file, directory);
  return files;
}

// Which rows of tables are left out, and what their labels mean.
void ReadRows(StrictReader& reader, Objective objective, DataFiles& data) {
  if (objective == Objective::kTokenClassification) return;
  data.skip_broken = reader.Boolean("skip_broken", false);
  data.unlabelled = reader.Text("unlabelled", "");
  if (objective == Objective::kRegression) return;
  data.classes = reader.Texts("classes").value_or(std::vector<std::string>());
  if (!data.classes.empty() && data.classes.size() != data.labels.size()) {
    reader.Reject("classes", "as many as labels");
  }
}

absl::Status ReadData(const Json& json, Objective objective, const std::string& directory,
                      DataFiles& data) {
  StrictReader reader(json, "data.");
  if (IsSynthetic(objective)) {
    // Both tasks need two special tokens and two others; recall pairs keys with values.
    const bool pairs = objective == Objective::kAssociativeRecall;
    data.vocabulary = reader.Integer("vocabulary", {4, kLongest, pairs});
    data.sequence = reader.Integer("sequence", {pairs ? 2 : 3, kLongest - 2, pairs});
    return reader.Finish();
  }
  data.train = ReadFiles(reader, "train", directory);
  if (data.train.empty()) reader.Reject("train", "a file or an array of files");
  data.valid = ReadFiles(reader, "valid", directory);
  if (HasColumns(objective)) {
    data.header = reader.Boolean("header", false);
    if (objective != Objective::kRegression) {
      data.labels = reader.Texts("labels").value_or(std::vector<std::string>());
    }
    ReadRows(reader, objective, data);
    const Json& columns = reader.Object("columns");
    HIPPODROME_RETURN_IF_ERROR(reader.status());
    HIPPODROME_RETURN_IF_ERROR(ReadColumns(columns, data));
  }
  return reader.Finish();
}

absl::StatusOr<OptimizerOptions> ReadOptimizer(const Json& json) {
  StrictReader reader(json, "optimizer.");
  OptimizerOptions options;
  options.rate = reader.Positive("rate", kHighestRate);
  options.beta1 = reader.BelowOne("beta1", options.beta1);
  options.beta2 = reader.BelowOne("beta2", options.beta2);
  options.epsilon = reader.Positive("epsilon", 1, options.epsilon);
  options.weight_decay = reader.NotNegative("weight_decay", 100, options.weight_decay);
  options.clip = reader.NotNegative("clip", 1e9, options.clip);
  if (reader.Find("ssm_rate") != nullptr) {
    options.ssm_rate = reader.NotNegative("ssm_rate", kHighestRate, 0);
  }
  options.ssm_decay = reader.Boolean("ssm_decay", options.ssm_decay);
  options.ema = reader.BelowOne("ema", options.ema);
  if (const auto names = reader.Texts("no_decay")) {
    options.no_decay = NoDecay{};
    for (const std::string& name : *names) {
      if (name != "bias" && name != "norm") reader.Reject("no_decay", "\"bias\" and \"norm\"");
      (name == "bias" ? options.no_decay->biases : options.no_decay->norms) = true;
    }
  }
  HIPPODROME_RETURN_IF_ERROR(reader.Finish());
  return options;
}

absl::StatusOr<Schedule> ReadSchedule(const Json& json, int64_t steps) {
  StrictReader reader(json, "schedule.");
  Schedule schedule;
  schedule.kind = ReadWord(reader, "kind", kScheduleWords, std::optional(schedule.kind));
  schedule.warmup = reader.Integer("warmup", {0, steps > 0 ? steps : kMostSteps}, 0);
  schedule.warmup_from = reader.NotNegative("warmup_from", kHighestRate, 0);
  schedule.floor = reader.NotNegative("floor", 1, 0);
  HIPPODROME_RETURN_IF_ERROR(reader.Finish());
  return schedule;
}

absl::Status ReadDropout(const Json& json, Objective objective, TrainingDropout& dropout) {
  StrictReader reader(json, "dropout.");
  dropout.embedding = reader.BelowOne("embedding", dropout.embedding);
  dropout.attention = reader.BelowOne("attention", dropout.attention);
  dropout.head = reader.BelowOne("head", dropout.head);
  dropout.tokens = reader.BelowOne("tokens", dropout.tokens);
  const bool has_texts =
      objective == Objective::kClassification || objective == Objective::kRegression;
  if (dropout.tokens > 0 && !has_texts) {
    reader.Reject("tokens", "0 but for classification and regression");
  }
  return reader.Finish();
}

void ReadDuration(StrictReader& top, TrainingRun& run) {
  if (top.Find("steps") != nullptr && top.Find("epochs") != nullptr) {
    top.Reject("epochs", "either steps or epochs, not both");
  }
  if (top.Find("epochs") != nullptr) {
    run.epochs = top.Integer("epochs", {1, kMostSteps});
  } else {
    run.steps = top.Integer("steps", {1, kMostSteps});
  }
}

void ReadSizes(StrictReader& top, TrainingRun& run) {
  if (IsSynthetic(run.objective)) {
    // "=>" ends the inputs of both; recall asks with a key after it.
    run.length = run.data.sequence + (run.objective == Objective::kInductionHead ? 1 : 2);
  } else {
    run.length = top.Integer("length", {1, kLongest});
  }
  run.batch = top.Integer("batch", {1, kLongest});
  run.micro_batch = top.Integer("micro_batch", {1, run.batch}, run.batch);
  if (run.batch % run.micro_batch != 0) {
    top.Reject("micro_batch", fmt::format("a divisor of batch {}", run.batch));
  }
}

void ReadMachine(StrictReader& top, TrainingRun& run) {
  run.weights = ReadWord(top, "weights", kWeightsWords, std::optional(run.weights));
  run.recompute = top.Boolean("recompute", run.recompute);
  run.seed = static_cast<uint64_t>(top.Integer("seed", {0, INT64_MAX}, 0));
  run.threads = static_cast<int>(top.Integer("threads", {0, kMostThreads}, 0));
  run.device = ReadWord(top, "device", kDeviceWords, std::optional(run.device));
  run.devices = top.Integer("devices", {0, kMostDevices}, 0);
  if (const int64_t parts = run.batch / run.micro_batch; run.devices > parts) {
    top.Reject("devices", fmt::format("at most {}, one for each micro-batch of a batch", parts));
  }
  run.shard_optimizer = top.Boolean("shard_optimizer", run.shard_optimizer);
  run.checkpoint_every = top.Integer("checkpoint_every", {0, kMostSteps}, run.checkpoint_every);
  run.evaluate_every = top.Integer("evaluate_every", {0, kMostSteps}, run.evaluate_every);
  run.log_every = top.Integer("log_every", {1, kMostSteps}, run.log_every);
}

absl::Status ReadEarlyStopping(StrictReader& top, TrainingRun& run) {
  if (top.Find("early_stopping") == nullptr) return absl::OkStatus();
  StrictReader reader(top.Object("early_stopping"), "early_stopping.");
  run.patience = reader.Integer("patience", {1, kMostSteps});
  if (run.evaluate_every == 0) top.Reject("evaluate_every", "1 or more, for early_stopping");
  if (!IsSynthetic(run.objective) && run.data.valid.empty()) {
    top.Reject("early_stopping", "nothing without data.valid");
  }
  // Evaluations are of the parameters themselves.
  if (run.optimizer.ema > 0) top.Reject("early_stopping", "nothing with optimizer.ema");
  return reader.Finish();
}

std::string Fingerprint(const TrainingRun& run, Json json) {
  for (const char* name : {"output", "threads", "device", "devices", "shard_optimizer",
                           "checkpoint_every", "log_every"}) {
    json.erase(name);
  }
  if (run.patience == 0) json.erase("evaluate_every");
  return Checksum(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

absl::StatusOr<TrainingRun> Read(const Json& json, const std::string& directory) {
  StrictReader top(json, "");
  const Json& model = top.Object("model");
  const Json& initialization = top.Object("initialization");
  const Json& data = top.Object("data");
  const Json& optimizer = top.Object("optimizer");
  const Json& schedule = top.Object("schedule");
  const Json& dropout = top.Object("dropout");
  HIPPODROME_RETURN_IF_ERROR(top.status());
  TrainingRun run;
  run.objective = ReadWord<Objective>(top, "objective", kObjectiveWords);
  run.output = Resolve(top.Text("output", ""), directory);
  if (run.output.empty()) top.Reject("output", "a directory");
  run.tokenizer = Resolve(top.Text("tokenizer", ""), directory);
  HIPPODROME_RETURN_IF_ERROR(ReadModel(model, directory, run.model));
  HIPPODROME_RETURN_IF_ERROR(ReadInitialization(initialization, run.initialization));
  HIPPODROME_RETURN_IF_ERROR(ReadData(data, run.objective, directory, run.data));
  ReadDuration(top, run);
  ReadSizes(top, run);
  HIPPODROME_ASSIGN_OR_RETURN(run.optimizer, ReadOptimizer(optimizer));
  HIPPODROME_ASSIGN_OR_RETURN(run.schedule, ReadSchedule(schedule, run.steps));
  HIPPODROME_RETURN_IF_ERROR(ReadDropout(dropout, run.objective, run.dropout));
  ReadMachine(top, run);
  HIPPODROME_RETURN_IF_ERROR(ReadEarlyStopping(top, run));
  HIPPODROME_RETURN_IF_ERROR(top.Finish());
  run.fingerprint = Fingerprint(run, json);
  return run;
}

}  // namespace

const char* Name(Objective objective) { return WordOf(kObjectiveWords, objective); }

bool IsSynthetic(Objective objective) {
  return objective == Objective::kInductionHead || objective == Objective::kAssociativeRecall;
}

absl::StatusOr<TrainingRun> ParseTrainingRun(const std::string& json_text,
                                             const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(json_text));
  return Read(json, directory);
}

absl::StatusOr<TrainingRun> ReadTrainingRun(const std::string& path) {
  constexpr size_t kLargestFile = size_t{16} << 20;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kLargestFile));
  const std::string directory = std::filesystem::absolute(path).parent_path().string();
  absl::StatusOr<TrainingRun> run = ParseTrainingRun(text, directory);
  if (!run.ok()) return InvalidArgument(path + ": " + Message(run.status()));
  return run;
}

}  // namespace hippodrome
