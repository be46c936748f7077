#include "tools/train/finetune/finetune_run.h"

#include <cstdio>
#include <utility>

#include "engine/base/durable_files.h"
#include "engine/base/json_object.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/train/checkpoint/checksum.h"
#include "tools/train/run/run_data.h"
#include "tools/train/run/starting_model.h"
#include "tools/train/session/training_session.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

// As BiGS was fine-tuned.
constexpr double kEpsilon = 1e-6;
constexpr double kDropout = 0.1;
constexpr int64_t kWarmupPart = 10;  // of the steps

const std::vector<EncoderHead> kAnyHead = {EncoderHead::kNone,
                                           EncoderHead::kMaskedLm,
                                           EncoderHead::kMultipleChoice,
                                           EncoderHead::kSequenceClassification,
                                           EncoderHead::kQuestionAnswering,
                                           EncoderHead::kTokenClassification};

// What the run came to before, or null. Errors: kFailedPrecondition for a run of other settings.
absl::StatusOr<Json> FindResult(const std::string& path, const std::string& fingerprint) {
  constexpr size_t kLargestFile = size_t{16} << 20;
  const auto text = ReadSmallFile(path, kLargestFile);
  if (absl::IsNotFound(text.status())) return Json();
  HIPPODROME_RETURN_IF_ERROR(text.status());
  auto result = ParseJsonObject(*text);
  if (!result.ok()) return InvalidArgument(path + ": " + Message(result.status()));
  if (result->value("fingerprint", "") == fingerprint && result->contains("run")) {
    return result->at("run");
  }
  return FailedPrecondition(path +
                            ": is of a run with other settings, or from another model; choose "
                            "another --out");
}

// Tells two models apart.
absl::StatusOr<std::string> WeightsChecksum(const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  std::string checksums;
  for (const auto& [name, tensor] : file->tensors()) {
    checksums += name + Checksum(tensor.data);
    file->Drop(tensor);
  }
  return Checksum(checksums);
}

}  // namespace

absl::StatusOr<FinetuneRunner> FinetuneRunner::Create(const FinetuneTask& task,
                                                      const FinetuneOptions& options) {
  FinetuneRunner runner(task, options);
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadEncoderConfig(options.model, kAnyHead));
  HIPPODROME_ASSIGN_OR_RETURN(runner.model_checksum_, WeightsChecksum(options.model));
  runner.positions_ = config.max_position_embeddings;
  runner.length_ = options.length > 0 ? options.length : task.Length(runner.positions_);
  return runner;
}

TrainingRun FinetuneRunner::Settings(const FinetunePoint& point) const {
  TrainingRun run;
  task_.Describe(run);
  run.model.from = options_.model;
  if (length_ > positions_) run.model.positions = length_;
  run.length = length_;
  run.batch = point.batch;
  run.micro_batch = options_.micro_batch > 0 ? options_.micro_batch : point.batch;
  run.epochs = point.epochs;
  run.optimizer.rate = point.rate;
  run.optimizer.epsilon = kEpsilon;
  run.optimizer.weight_decay = point.weight_decay;
  run.schedule.kind = ScheduleKind::kLinear;
  run.dropout.embedding = kDropout;
  run.dropout.head = kDropout;
  run.weights = options_.weights;
  run.device = options_.device;
  run.threads = options_.threads;
  run.patience = options_.patience;
  return run;
}

absl::StatusOr<int64_t> FinetuneRunner::Batches(const FinetunePoint& point) {
  if (const auto known = batches_.find(point.batch); known != batches_.end()) return known->second;
  const TrainingRun run = Settings(point);
  HIPPODROME_ASSIGN_OR_RETURN(const ModelConfig config, StartingConfig(run));
  HIPPODROME_ASSIGN_OR_RETURN(const RunData data, ReadRunData(run, config));
  return batches_[point.batch] = data.train->batches();
}

absl::StatusOr<TrainingRun> FinetuneRunner::Plan(const FinetunePoint& point, int64_t seed,
                                                 const std::string& folder) {
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t batches, Batches(point));
  TrainingRun run = Settings(point);
  run.output = folder;
  run.seed = static_cast<uint64_t>(seed);
  run.schedule.warmup = point.epochs * batches / kWarmupPart;
  run.evaluate_every = batches;
  run.checkpoint_every = batches;
  return ParseTrainingRun(ToJson(run), folder);
}

absl::StatusOr<Json> FinetuneRunner::Judge(const std::string& model) const {
  const EncoderSessionOptions how = {.weights = options_.weights,
                                     .device = options_.device,
                                     .cpu = {.threads = options_.threads},
                                     .encoder = {}};
  HIPPODROME_ASSIGN_OR_RETURN(const auto session, EncoderSession::Open(how, model, {task_.head()}));
  return task_.Judge(*session);
}

absl::StatusOr<std::optional<Json>> FinetuneRunner::Train(const TrainingRun& run) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto session, TrainingSession::Open(run, /*resume=*/true));
  // Only now, for it is an error where the folder has another run.
  HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(run.output + "/run.json", ToJson(run) + "\n"));
  Json course = Json::object();
  const absl::StatusOr<bool> finished = session->Train();
  if (absl::IsAborted(finished.status())) {
    course["error"] = Message(finished.status());
  } else {
    HIPPODROME_RETURN_IF_ERROR(finished.status());
    if (!*finished) return std::nullopt;
  }
  const TrainingPosition& position = session->position();
  course["steps"] = position.step;
  course["seconds"] = position.seconds;
  if (position.best.has_value()) course["model_step"] = position.best->step;
  return course;
}

absl::StatusOr<std::optional<Json>> FinetuneRunner::Run(const FinetunePoint& point, int64_t seed) {
  const std::string name = RunName(point, seed);
  const std::string folder = options_.runs + "/" + name;
  HIPPODROME_ASSIGN_OR_RETURN(const TrainingRun run, Plan(point, seed, folder));
  const std::string fingerprint = run.fingerprint + "-" + model_checksum_;
  HIPPODROME_ASSIGN_OR_RETURN(Json found, FindResult(folder + "/result.json", fingerprint));
  if (!found.is_null()) return found;
  std::fprintf(stderr, "finetune %s: %s\n", task_.name().c_str(), name.c_str());
  Json result = {{"name", name},           {"rate", point.rate},
                 {"batch", point.batch},   {"weight_decay", point.weight_decay},
                 {"epochs", point.epochs}, {"seed", seed}};
  HIPPODROME_ASSIGN_OR_RETURN(const std::optional<Json> course, Train(run));
  if (!course.has_value()) return std::nullopt;
  result.update(*course);
  if (!result.contains("error")) {
    HIPPODROME_ASSIGN_OR_RETURN(result["dev"], Judge(folder + "/model"));
  }
  Json record = Json::object();
  record["fingerprint"] = fingerprint;
  record["run"] = result;
  HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(folder + "/result.json", record.dump(1) + "\n"));
  HIPPODROME_RETURN_IF_ERROR(RemoveTree(folder + "/checkpoints"));
  return result;
}

}  // namespace hippodrome
