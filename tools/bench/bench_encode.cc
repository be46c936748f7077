#include "tools/bench/bench_encode.h"

#include <memory>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/encoder.h"
#include "engine/models/bigs/bigs.h"
#include "tools/bench/best_time.h"
#include "tools/bench/timing_backend.h"
#include "tools/limits/model_cost.h"

namespace hippodrome {
namespace {

// What is asked of each input: one token where the head answers for tokens.
EncoderRequest RandomRequest(const BigsConfig& config, int64_t tokens, int64_t seed) {
  EncoderRequest request;
  for (int64_t i = 0; i < tokens; ++i) {
    request.ids.push_back(static_cast<int32_t>((i * 7919 + seed * 104729) % config.vocab_size));
  }
  if (config.head == EncoderHead::kNone) request.task = EncoderTask::kEmbedding;
  if (AnswersForTokens(config.head)) request.rows = {static_cast<int32_t>(tokens / 2)};
  return request;
}

// Inputs of one length that run together.
class Runner {
 public:
  static absl::StatusOr<Runner> Make(Backend& backend, const Bigs& model, int64_t length,
                                     int64_t batch) {
    Runner runner;
    HIPPODROME_ASSIGN_OR_RETURN(
        runner.encoder_,
        Encoder::Create(backend, model, {.pad_to = 0, .max_batch_tokens = batch * length}));
    for (int64_t i = 0; i < batch; ++i) {
      runner.requests_.push_back(RandomRequest(model.config(), length, i));
    }
    HIPPODROME_RETURN_IF_ERROR(runner.encoder_->Validate(runner.requests_[0]));
    return runner;
  }

  void Run() {
    std::vector<const EncoderRequest*> requests;
    for (const EncoderRequest& request : requests_) requests.push_back(&request);
    encoder_->Run(requests);
  }

  int64_t batch() const { return static_cast<int64_t>(requests_.size()); }
  int64_t length() const { return static_cast<int64_t>(requests_[0].ids.size()); }

 private:
  Runner() = default;

  std::unique_ptr<Encoder> encoder_;
  std::vector<EncoderRequest> requests_;
};

absl::StatusOr<std::vector<Runner>> MakeRunners(Backend& backend, const Bigs& model,
                                                const EncodeBenchmark& benchmark) {
  std::vector<Runner> runners;
  for (const int64_t length : benchmark.lengths) {
    for (const int64_t batch : benchmark.batches) {
      HIPPODROME_ASSIGN_OR_RETURN(Runner runner, Runner::Make(backend, model, length, batch));
      runner.Run();  // what is made at the first use of a length
      runners.push_back(std::move(runner));
    }
  }
  return runners;
}

class TimedEncoder final : public TimedModel {
 public:
  static absl::StatusOr<std::unique_ptr<TimedEncoder>> Make(Backend& backend,
                                                            const EncodeBenchmark& benchmark,
                                                            const Clock& clock) {
    std::unique_ptr<TimedEncoder> encoder(new TimedEncoder(backend, benchmark, clock));
    RandomWeights source;
    HIPPODROME_ASSIGN_OR_RETURN(encoder->model_,
                                Bigs::Load(backend, benchmark.config, source, benchmark.weights));
    HIPPODROME_ASSIGN_OR_RETURN(encoder->runners_,
                                MakeRunners(backend, *encoder->model_, benchmark));
    for (const Runner& runner : encoder->runners_) encoder->Add(runner.batch(), runner.length());
    return encoder;
  }

  absl::Status RunRound() override {
    for (size_t i = 0; i < runners_.size(); ++i) {
      works_[i].seconds.push_back(SecondsOf(runners_[i]));
    }
    return absl::OkStatus();
  }

  const std::vector<TimedWork>& works() const override { return works_; }

  // Rounds of their own, because to time single operations is to wait for each. They are the last.
  absl::StatusOr<std::map<std::string, Shares>> MeasureShares(const Machine& machine) {
    runners_.clear();
    TimingBackend timing(backend_, clock_);
    HIPPODROME_ASSIGN_OR_RETURN(std::vector<Runner> runners,
                                MakeRunners(timing, *model_, benchmark_));
    std::map<std::string, Shares> shares;
    for (Runner& runner : runners) {
      timing.Clear();
      const BoundShares bounds(machine);
      const double seconds = SecondsOf(runner);
      const std::string work =
          "encode " + std::to_string(runner.batch()) + " x " + std::to_string(runner.length());
      shares[work] = SharesOf(timing, seconds);
      if (machine.seconds_by_bound) shares[work + ", by what bounds it"] = bounds.Get();
    }
    return shares;
  }

 private:
  TimedEncoder(Backend& backend, const EncodeBenchmark& benchmark, Clock clock)
      : backend_(backend), benchmark_(benchmark), clock_(std::move(clock)) {}

  double SecondsOf(Runner& runner) const {
    const double begin = clock_();
    runner.Run();
    return clock_() - begin;
  }

  void Add(int64_t batch, int64_t length) {
    works_.push_back({.name = "encode",
                      .length = length,
                      .batch = batch,
                      .tokens = static_cast<double>(batch * length),
                      .weights = benchmark_.weights,
                      .cost = EncodeCost(benchmark_.config, batch, length, benchmark_.weights)});
  }

  Backend& backend_;
  EncodeBenchmark benchmark_;
  const Clock clock_;
  std::unique_ptr<Bigs> model_;
  std::vector<Runner> runners_;
  std::vector<TimedWork> works_;  // of each runner
};

}  // namespace

EncodeBenchmark DefaultEncodeBenchmark(const BigsConfig& config) {
  const int64_t positions = config.max_position_embeddings;
  if (positions <= 512) return {.config = config, .lengths = {positions}, .batches = {1, 8}};
  return {.config = config, .lengths = {512, positions}, .batches = {1}};
}

absl::StatusOr<std::unique_ptr<TimedModel>> MakeTimedEncoder(Backend& backend,
                                                             const EncodeBenchmark& benchmark) {
  return TimedEncoder::Make(backend, benchmark, SteadySeconds);
}

absl::StatusOr<BenchReport> BenchEncode(Machine& machine, const EncodeBenchmark& benchmark) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto encoder,
                              TimedEncoder::Make(*machine.backend, benchmark, machine.clock));
  TimedModel* const model = encoder.get();
  BenchReport report;
  HIPPODROME_ASSIGN_OR_RETURN(report.ceilings, RunRounds(machine, {&model, 1}, benchmark.repeats));
  for (const TimedWork& work : encoder->works()) {
    report.results.push_back(BestRate(work, report.ceilings));
  }
  HIPPODROME_ASSIGN_OR_RETURN(report.shares, encoder->MeasureShares(machine));
  return report;
}

}  // namespace hippodrome
