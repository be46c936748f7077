#include "tools/train/session/training_session.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "engine/base/status.h"
#include "tools/command_line/text_file.h"
#include "tools/convert/model_card.h"
#include "tools/convert/models/bigs_shapes.h"
#include "tools/convert/models/h3_shapes.h"
#include "tools/convert/models/shape_map.h"
#include "tools/limits/machine.h"
#include "tools/mpi/collectives.h"
#include "tools/train/checkpoint/checksum.h"
#include "tools/train/run/schedule.h"
#include "tools/train/run/starting_model.h"
#include "tools/train/session/run_description.h"
#include "tools/train/step/step_limits.h"

namespace hippodrome {
namespace {

// "950", "12.3 k", "1.20 M".
std::string ShortNumber(double value) {
  if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f} k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

// "2:03", "1:02:03".
std::string HoursMinutesSeconds(double seconds) {
  const int64_t all = std::llround(seconds);
  const int64_t hours = all / 3600, minutes = all / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60);
  return fmt::format("{}:{:02}", minutes, all % 60);
}

// Rows of the head: the published part of tokens that masked LM hides, one answer for a text, else
// all.
int64_t Answers(const TrainingRun& run) {
  const int64_t tokens = run.batch * run.length;
  switch (run.objective) {
    case Objective::kMaskedLm:
      return tokens * 15 / 100;
    case Objective::kClassification:
    case Objective::kRegression:
      return run.batch;
    default:
      return tokens;
  }
}

// Tells two batches apart.
std::string Describe(const TrainingBatch& batch) {
  const auto text = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(values[0]));
  };
  return Checksum(text(batch.ids) + text(batch.labels) + text(batch.targets));
}

// Tokens per second, from ceilings that are measured now (about half a second); `parameters`: the
// number of values that are trained.
double RunLimit(const TrainingRun& run, const ModelConfig& config, int64_t parameters) {
  const StepSize size = {.sequences = run.batch,
                         .length = run.length,
                         .answers = Answers(run),
                         .parameters = parameters};
  const Cost cost = std::visit([&](const auto& c) { return TrainingStepCost(c, size); }, config);
  return MostTokensPerSecond(cost, size, run.weights, MeasureCeilings({.threads = run.threads}));
}

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool Due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

std::string ConfigJson(const ModelConfig& config) {
  return std::visit([](const auto& c) { return ToJson(c); }, config);
}

// The tensors of a model directory in the order of convert, so that export and convert make the
// same file again; of models that convert does not know, in that of the parameters.
std::vector<TensorSpec> ResultTensors(const ModelConfig& config, const Parameters& parameters) {
  if (const auto* encoder = std::get_if<BigsConfig>(&config)) {
    return BigsTensorSpecs(*encoder, DType::kF32, {.positions = false, .pooler = false});
  }
  const auto& decoder = std::get<H3Config>(config);
  if (decoder.mixer == DecoderMixer::kH3) return H3TensorSpecs(decoder, DType::kF32);
  std::vector<TensorSpec> tensors;
  for (const Parameter& parameter : parameters.all()) {
    tensors.push_back({.name = parameter.name, .dtype = DType::kF32, .shape = parameter.shape});
  }
  return tensors;
}

}  // namespace

double SecondsLeft(int64_t first, int64_t done, int64_t steps, double seconds) {
  if (done <= first) return -1;
  return seconds / static_cast<double>(done - first) * static_cast<double>(steps - done);
}

std::string DescribePace(const TrainingPace& pace, double seconds_left) {
  std::string text =
      fmt::format("loss {:.3f}, {} tokens/s", pace.loss, ShortNumber(pace.tokens_per_second));
  if (pace.fraction_of_limit > 0) {
    text += fmt::format(", {:.0f} % of the limit", 100 * pace.fraction_of_limit);
  }
  if (seconds_left >= 0) text += fmt::format(", {} left", HoursMinutesSeconds(seconds_left));
  return text;
}

TrainingProgress::TrainingProgress(int64_t first, int64_t steps)
    : first_(first), steps_(steps), start_(Clock::now()), progress_("training") {}

void TrainingProgress::Update(int64_t done, const TrainingPace& pace) {
  const double passed = std::chrono::duration<double>(Clock::now() - start_).count();
  progress_.Update(done, steps_, DescribePace(pace, SecondsLeft(first_, done, steps_, passed)));
}

absl::StatusOr<std::unique_ptr<TrainingSession>> TrainingSession::Open(const TrainingRun& run,
                                                                       bool resume,
                                                                       Communicator* ranks) {
  std::unique_ptr<TrainingSession> session(new TrainingSession(run, ranks));
  HIPPODROME_RETURN_IF_ERROR(session->Agreed(session->ReadInput()));
  HIPPODROME_RETURN_IF_ERROR(session->Prepare());
  bool begun = false;
  HIPPODROME_RETURN_IF_ERROR(session->PrepareOutput(resume, begun));
  if (begun) HIPPODROME_RETURN_IF_ERROR(session->Resume());
  const int64_t step = session->position_.step;
  if (session->first()) {
    auto log = MetricsLog::Open(run.output + "/metrics.jsonl", step == 0 ? -1 : step);
    HIPPODROME_RETURN_IF_ERROR(session->Agreed(log.status()));
    session->log_ = *std::move(log);
    session->progress_ = std::make_unique<TrainingProgress>(step, session->steps_);
  } else {
    HIPPODROME_RETURN_IF_ERROR(session->Agreed(absl::OkStatus()));
  }
  session->saved_step_ = step;
  session->logged_tokens_ = session->position_.tokens;
  session->logged_seconds_ = session->position_.seconds;
  return session;
}

absl::Status TrainingSession::Agreed(const absl::Status& status) const {
  return ranks_ == nullptr ? status : Agree(*ranks_, status);
}

absl::Status TrainingSession::ReadInput() {
  HIPPODROME_ASSIGN_OR_RETURN(config_, StartingConfig(run_));
  HIPPODROME_ASSIGN_OR_RETURN(data_, ReadRunData(run_, config_));
  steps_ = run_.steps > 0 ? run_.steps : run_.epochs * data_.train->batches();
  return absl::OkStatus();
}

absl::Status TrainingSession::Prepare() {
  if (ranks_ != nullptr) {
    hosts_ = AllGather(*ranks_, ranks_->host());
    HIPPODROME_RETURN_IF_ERROR(SameOnAll(*ranks_, "run file", run_.fingerprint));
    HIPPODROME_RETURN_IF_ERROR(SameOnAll(*ranks_, "first batch", Describe(data_.train->Batch(0))));
  }
  HIPPODROME_ASSIGN_OR_RETURN(RunDevices devices, OpenRunDevices(run_, ranks_));
  auto replicas = Replicas::Create(run_, config_, std::move(devices));
  HIPPODROME_RETURN_IF_ERROR(Agreed(replicas.status()));
  replicas_ = *std::move(replicas);
  position_.fingerprint = run_.fingerprint;
  limit_ = RunLimit(run_, config_, replicas_->at(0).size());
  return absl::OkStatus();
}

absl::Status TrainingSession::PrepareOutput(bool resume, bool& begun) {
  absl::Status status;
  if (first()) {
    std::error_code error;
    std::filesystem::create_directories(run_.output, error);
    if (error) status = absl::InternalError(run_.output + ": " + error.message());
    begun = std::filesystem::exists(run_.output + "/checkpoints", error);
    if (begun && !resume) {
      status = FailedPrecondition(run_.output +
                                  ": has checkpoints; use --resume to go on, or remove them");
    }
  }
  HIPPODROME_RETURN_IF_ERROR(Agreed(status));
  if (ranks_ != nullptr) begun = AnyOf(*ranks_, begun);
  return absl::OkStatus();
}

absl::Status TrainingSession::LoadState(std::optional<LoadedTrainingState>& state) const {
  auto loaded = LoadLatestState(run_.output, replicas_->at(0).StateArrays());
  if (absl::IsNotFound(loaded.status())) return absl::OkStatus();  // stopped before the first
  HIPPODROME_RETURN_IF_ERROR(loaded.status());
  for (const std::string& warning : loaded->warnings) {
    std::fprintf(stderr, "train: %s\n", warning.c_str());
  }
  if (loaded->position.fingerprint != run_.fingerprint) {
    return FailedPrecondition(run_.output + ": its checkpoints are of another run file");
  }
  state = *std::move(loaded);
  return absl::OkStatus();
}

absl::Status TrainingSession::Resume() {
  std::optional<LoadedTrainingState> state;
  HIPPODROME_RETURN_IF_ERROR(Agreed(first() ? LoadState(state) : absl::OkStatus()));
  bool found = state.has_value();
  if (found) position_ = state->position;
  if (ranks_ != nullptr) {
    found = AnyOf(*ranks_, found);
    int64_t place[] = {position_.step, position_.tokens, position_.batch,
                       position_.best.has_value() ? 1 : 0};
    Broadcast(*ranks_, 0, std::as_writable_bytes(std::span(place)));
    std::tie(position_.step, position_.tokens, position_.batch) =
        std::tie(place[0], place[1], place[2]);
    if (place[3] == 1) {
      if (!first()) position_.best.emplace();
      Broadcast(*ranks_, 0, std::as_writable_bytes(std::span(&*position_.best, 1)));
    }
  }
  return found ? replicas_->Restore(first() ? &*state : nullptr) : absl::OkStatus();
}

void TrainingSession::WatchForLostRanks(const StopSignal& stop) {
  if (ranks_ == nullptr) return;
  ranks_->OnLongWait([this, &stop, said = false](int peer) mutable {
    // One is enough to tell.
    if (said || !stop.Received() || (!first() && !(ranks_->rank() == 1 && peer == 0))) return;
    said = true;
    const std::string waits = RankName(ranks_->rank(), ranks_->host());
    const std::string lost = RankName(peer, hosts_[static_cast<size_t>(peer)]);
    const std::string saved = saved_step_ > 0
                                  ? "the last checkpoint is of step " + std::to_string(saved_step_)
                                  : "there is no checkpoint yet";
    std::fprintf(
        stderr,
        "train: %s was told to stop while it waits for %s; if that has died, %s (--resume)\n",
        waits.c_str(), lost.c_str(), saved.c_str());
  });
}

absl::StatusOr<bool> TrainingSession::Train() {
  const StopSignal stop;
  WatchForLostRanks(stop);
  while (!Ended()) {
    HIPPODROME_RETURN_IF_ERROR(TrainStep());
    const int64_t step = position_.step;
    const bool logs = Due(step, run_.log_every) || step == steps_;
    if (logs) HIPPODROME_RETURN_IF_ERROR(LogStep());
    if (data_.valid != nullptr && (Due(step, run_.evaluate_every) || step == steps_)) {
      HIPPODROME_RETURN_IF_ERROR(Evaluate());
    }
    const bool last = Ended();
    if (last && !logs) HIPPODROME_RETURN_IF_ERROR(LogStep());
    const bool told = ranks_ == nullptr ? stop.Received() : AnyOf(*ranks_, stop.Received());
    const bool stops = told && !last;
    if (Due(step, run_.checkpoint_every) || last || stops) {
      HIPPODROME_RETURN_IF_ERROR(SaveState());
    }
    if (stops) return false;
  }
  HIPPODROME_RETURN_IF_ERROR(SaveResult());
  return true;
}

bool TrainingSession::Ended() const {
  const bool stops_early = run_.patience > 0 && position_.best.has_value() &&
                           position_.best->evaluations_since >= run_.patience;
  return stops_early || position_.step >= steps_;
}

absl::Status TrainingSession::TrainStep() {
  const Clock::time_point start = Clock::now();
  const TrainingBatch batch = data_.train->Batch(position_.batch);
  const uint64_t seed = (run_.seed << 40) + static_cast<uint64_t>(position_.batch * run_.batch);
  const BatchLoss loss = replicas_->Learn(batch, seed);
  gradient_norm_ = replicas_->GradientNorm();
  if (!std::isfinite(loss.sum) || !std::isfinite(gradient_norm_)) {
    return absl::AbortedError("step " + std::to_string(position_.step + 1) + ": loss " +
                              std::to_string(loss.mean()) + ", gradient norm " +
                              std::to_string(gradient_norm_) +
                              ", expected finite numbers; try a lower rate or clipping");
  }
  rate_ = RateAt(run_.schedule, run_.optimizer.rate, steps_, position_.step);
  replicas_->Step(position_.step + 1, rate_ / run_.optimizer.rate, gradient_norm_);
  loss_ += loss;
  step_loss_ = loss.mean();
  ++position_.step;
  ++position_.batch;
  position_.tokens += batch.sequences * batch.length;
  position_.seconds += Since(start);
  return absl::OkStatus();
}

absl::Status TrainingSession::LogStep() {
  const double seconds = position_.seconds - logged_seconds_;
  const double pace = static_cast<double>(position_.tokens - logged_tokens_) / seconds;
  MetricsLine line = {.step = position_.step,
                      .tokens = position_.tokens,
                      .seconds = position_.seconds,
                      .values = {{"loss", loss_.mean()},
                                 {"step_loss", step_loss_},
                                 {"rate", rate_},
                                 {"gradient_norm", gradient_norm_},
                                 {"tokens_per_second", pace}}};
  if (limit_ > 0) line.values["fraction_of_limit"] = pace / limit_;
  const double communication = replicas_->at(0).communication_seconds();
  if (ranks_ != nullptr) {
    line.values["fraction_in_communication"] = (communication - logged_communication_) / seconds;
  }
  const double loss = loss_.mean();
  loss_ = {};
  logged_tokens_ = position_.tokens;
  logged_seconds_ = position_.seconds;
  logged_communication_ = communication;
  if (!first()) return Agreed(absl::OkStatus());
  progress_->Update(position_.step, {.loss = loss,
                                     .tokens_per_second = pace,
                                     .fraction_of_limit = limit_ > 0 ? pace / limit_ : 0});
  return Agreed(log_->Append(line));
}

absl::Status TrainingSession::Evaluate() {
  // Logits of whole language models are large, and their loss says more.
  const bool judge = run_.objective != Objective::kCausalLm;
  const BatchLoss loss = replicas_->Evaluate(
      data_.valid->batches(), [&](int64_t i) { return data_.valid->Batch(i); }, judge);
  MetricsLine line = {.step = position_.step,
                      .tokens = position_.tokens,
                      .seconds = position_.seconds,
                      .values = {{"valid_loss", loss.mean()}}};
  if (loss.judged > 0) line.values["accuracy"] = loss.accuracy();
  if (run_.patience > 0) Compare(loss);
  return Agreed(first() ? log_->Append(line) : absl::OkStatus());
}

void TrainingSession::Compare(const BatchLoss& loss) {
  double figure = loss.judged > 0 ? loss.accuracy() : -loss.mean();
  if (!std::isfinite(figure)) figure = std::numeric_limits<double>::lowest();
  if (position_.best.has_value() && figure <= position_.best->figure) {
    ++position_.best->evaluations_since;
    return;
  }
  position_.best = {.step = position_.step, .figure = figure};
  replicas_->at(0).KeepBest();
}

absl::Status TrainingSession::SaveState() {
  Replica& replica = replicas_->at(0);
  const std::vector<TrainingArray> arrays = replica.StateArrays();
  absl::Status status;
  if (first()) {
    status = SaveTrainingState(run_.output, position_, arrays,
                               [&](size_t index) { return replica.ReadState(index); });
  } else {
    for (size_t i = 0; i < arrays.size(); ++i) (void)replica.ReadState(i);
  }
  HIPPODROME_RETURN_IF_ERROR(Agreed(status));
  saved_step_ = position_.step;
  return absl::OkStatus();
}

absl::Status TrainingSession::SaveResult() {
  Replica& replica = replicas_->at(0);
  ModelToSave model = {.config_json = ConfigJson(config_),
                       .run_json = ToJson(run_),
                       .card = {},
                       .tokenizer = run_.tokenizer.empty() ? run_.model.from : run_.tokenizer,
                       .tensors = ResultTensors(config_, replica.parameters())};
  if (!first()) {
    for (const TensorSpec& tensor : model.tensors) (void)replica.ReadResult(tensor.name);
    return Agreed(absl::OkStatus());
  }
  HIPPODROME_RETURN_IF_ERROR(Agreed(WriteResult(std::move(model))));
  return absl::OkStatus();
}

absl::Status TrainingSession::WriteResult(ModelToSave model) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto lines, ReadMetrics(run_.output + "/metrics.jsonl"));
  HIPPODROME_ASSIGN_OR_RETURN(model.card,
                              ModelCardText({.config_json = model.config_json,
                                             .parameters = CountParameters(model.tensors),
                                             .weights = DType::kF32,
                                             .origin = DescribeRun(run_, position_, lines),
                                             .serve = kServeHere}));
  HIPPODROME_RETURN_IF_ERROR(SaveModel(run_.output + "/model", model, [&](size_t index) {
    return replicas_->at(0).ReadResult(model.tensors[index].name);
  }));
  return WriteTextFile(run_.output + "/loss.svg", DrawLossCurve(lines));
}

}  // namespace hippodrome
