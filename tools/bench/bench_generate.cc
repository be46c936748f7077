#include "tools/bench/bench_generate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/weights_source.h"
#include "tools/bench/timing_backend.h"

namespace hippodrome {
namespace {

// Prefill() stops after each part when the time is up from the start.
constexpr auto kOnePart = Generator::Clock::time_point::min();
// Prompts of fewer parts say nothing about how speed develops.
constexpr size_t kManyParts = 100;
constexpr int64_t kStepsPerRound = 32;  // whole blocks of the look-ahead

GenerationRequest RandomPrompt(const H3Config& config, int64_t tokens, int64_t seed) {
  GenerationRequest request{.max_tokens = 1 << 20, .sampling = {.temperature = 0}};
  for (int64_t i = 0; i < tokens; ++i) {
    request.prompt.push_back(static_cast<int32_t>((i * 7919 + seed * 104729) % config.vocab_size));
  }
  request.ignore_eos = true;
  return request;
}

// Times one prompt, and steps of `batch` sequences with prompts behind them.
class Runner {
 public:
  static absl::StatusOr<Runner> Make(Backend& backend, const HybridH3& model,
                                     const GenerateBenchmark& benchmark, int64_t batch,
                                     const Clock& clock) {
    GeneratorOptions options{.max_sequences = batch, .h3_state = benchmark.h3_state};
    const int64_t rows = benchmark.prompt + kStepsPerRound * (benchmark.repeats + 1) + 64;
    options.key_value_bytes = KeyValueBytes(model.config(), batch * rows);
    Runner runner;
    runner.clock_ = clock;
    HIPPODROME_ASSIGN_OR_RETURN(runner.generator_, Generator::Create(backend, model, options));
    for (int64_t i = 0; i < batch; ++i) {
      GenerationRequest request = RandomPrompt(model.config(), benchmark.prompt, i);
      request.max_tokens = kStepsPerRound * (benchmark.repeats + 1) + 2;
      runner.requests_.push_back(std::move(request));
    }
    return runner;
  }

  // Admits and prefills every sequence, in place of those before; when each part (a layer of a
  // chunk) of the last prompt was done, in seconds from its start.
  absl::StatusOr<std::vector<double>> Prefill() {
    std::vector<double> done;
    for (const SequenceId id : admitted_) generator_->Release(id);
    admitted_.clear();
    for (const GenerationRequest& request : requests_) {
      HIPPODROME_RETURN_IF_ERROR(generator_->Validate(request));
      HIPPODROME_ASSIGN_OR_RETURN(admitted_.emplace_back(), generator_->Admit(request));
      done.clear();
      const double begin = clock_();
      while (generator_->prefilling()) {
        generator_->Prefill(kOnePart, events_);
        done.push_back(clock_() - begin);
      }
    }
    return done;
  }

  // Seconds of kStepsPerRound steps.
  double Step() {
    const double begin = clock_();
    for (int64_t i = 0; i < kStepsPerRound; ++i) {
      events_.clear();
      generator_->Step(events_);
    }
    return clock_() - begin;
  }

  const Generator& generator() const { return *generator_; }

 private:
  Runner() = default;

  Clock clock_;
  std::unique_ptr<Generator> generator_;
  std::vector<GenerationRequest> requests_;
  std::vector<SequenceId> admitted_;
  std::vector<TokenEvent> events_;
};

// How long the first and the last tenth of a long prompt take.
class Tenths {
 public:
  // `done`: when each part of a prompt was done.
  void Take(const std::vector<double>& done) {
    if (done.size() < kManyParts) return;
    const size_t tenth = done.size() / 10;
    first_.push_back(done[tenth - 1]);
    last_.push_back(done.back() - done[done.size() - 1 - tenth]);
  }
  void Report(int64_t prompt, DType weights, std::vector<BenchResult>& results) const {
    if (first_.empty()) return;
    const auto add = [&](const char* name, const std::vector<double>& seconds) {
      results.push_back({.name = name,
                         .length = prompt,
                         .weights = WeightsName(weights),
                         .value = Median(seconds),
                         .unit = "s, median"});
    };
    add("prefill_first_tenth", first_);
    add("prefill_last_tenth", last_);
  }

 private:
  std::vector<double> first_, last_;
};

class TimedDecoder final : public TimedModel {
 public:
  static absl::StatusOr<std::unique_ptr<TimedDecoder>> Make(Backend& backend,
                                                            const GenerateBenchmark& benchmark,
                                                            const Clock& clock) {
    std::unique_ptr<TimedDecoder> decoder(new TimedDecoder(backend, benchmark, clock));
    HIPPODROME_ASSIGN_OR_RETURN(decoder->model_,
                                LoadBenchModel(backend, benchmark.config, benchmark.weights));
    HIPPODROME_RETURN_IF_ERROR(decoder->AddPrefill());
    for (const int64_t batch : benchmark.batches) {
      HIPPODROME_RETURN_IF_ERROR(decoder->AddDecode(batch));
    }
    return decoder;
  }

  absl::Status RunRound() override {
    HIPPODROME_ASSIGN_OR_RETURN(const std::vector<double> done, prompt_->Prefill());
    works_[0].seconds.push_back(done.back());
    tenths_.Take(done);
    for (size_t i = 0; i < runners_.size(); ++i) {
      works_[i + 1].seconds.push_back(runners_[i].Step() / kStepsPerRound);
    }
    return absl::OkStatus();
  }

  const std::vector<TimedWork>& works() const override { return works_; }

  std::vector<BenchResult> Results(const Ceilings& ceilings) const {
    std::vector<BenchResult> results = {BestRate(works_[0], ceilings)};
    tenths_.Report(benchmark_.prompt, benchmark_.weights, results);
    for (size_t i = 1; i < works_.size(); ++i) results.push_back(BestRate(works_[i], ceilings));
    return results;
  }

  // A round of its own, because to time single operations is to wait for each. It is the last.
  absl::StatusOr<std::map<std::string, Shares>> MeasureShares(const Machine& machine) {
    prompt_.reset();
    runners_.clear();
    std::map<std::string, Shares> shares;
    TimingBackend timing(backend_, clock_);
    for (const int64_t batch : benchmark_.batches) {
      HIPPODROME_ASSIGN_OR_RETURN(Runner runner,
                                  Runner::Make(timing, *model_, benchmark_, batch, clock_));
      timing.Clear();
      HIPPODROME_ASSIGN_OR_RETURN(const std::vector<double> done, runner.Prefill());
      if (batch == 1) shares["prefill"] = SharesOf(timing, done.back());
      timing.Clear();
      const std::string work = "decode batch " + std::to_string(batch);
      shares[work] = SharesOf(timing, runner.Step());
      if (!machine.seconds_by_bound) continue;
      // Without single operations, so that steps are replayed.
      HIPPODROME_ASSIGN_OR_RETURN(Runner replayed,
                                  Runner::Make(backend_, *model_, benchmark_, batch, clock_));
      HIPPODROME_RETURN_IF_ERROR(replayed.Prefill().status());
      replayed.Step();
      const BoundShares bounds(machine);
      replayed.Step();
      shares[work + ", by what bounds it"] = bounds.Get();
    }
    return shares;
  }

 private:
  TimedDecoder(Backend& backend, const GenerateBenchmark& benchmark, Clock clock)
      : backend_(backend), benchmark_(benchmark), clock_(std::move(clock)) {}

  // In memory that a first prompt made resident, as in a server that has run for a while.
  absl::Status AddPrefill() {
    const int64_t prompt = benchmark_.prompt;
    HIPPODROME_ASSIGN_OR_RETURN(prompt_, Runner::Make(backend_, *model_, benchmark_, 1, clock_));
    HIPPODROME_RETURN_IF_ERROR(prompt_->Prefill().status());
    works_.push_back({.name = "prefill",
                      .length = prompt,
                      .tokens = static_cast<double>(prompt),
                      .weights = benchmark_.weights,
                      .cost = PrefillCost(benchmark_.config, 1, prompt, benchmark_.weights)});
    return absl::OkStatus();
  }

  absl::Status AddDecode(int64_t batch) {
    HIPPODROME_ASSIGN_OR_RETURN(Runner runner,
                                Runner::Make(backend_, *model_, benchmark_, batch, clock_));
    HIPPODROME_RETURN_IF_ERROR(runner.Prefill().status());
    works_.push_back({.name = "decode",
                      .length = benchmark_.prompt,
                      .batch = batch,
                      .tokens = static_cast<double>(batch),
                      .weights = benchmark_.weights,
                      .cost = DecodeCost(benchmark_.config, batch, benchmark_.prompt,
                                         benchmark_.weights, runner.generator().step_bytes())});
    runners_.push_back(std::move(runner));
    return absl::OkStatus();
  }

  Backend& backend_;
  GenerateBenchmark benchmark_;
  const Clock clock_;
  std::unique_ptr<HybridH3> model_;
  std::optional<Runner> prompt_;
  std::vector<Runner> runners_;  // of each batch
  std::vector<TimedWork> works_;
  Tenths tenths_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HybridH3>> LoadBenchModel(Backend& backend, const H3Config& config,
                                                         DType weights) {
  RandomWeights source;
  return HybridH3::Load(backend, config, source, weights);
}

int64_t KeyValueBytes(const H3Config& config, int64_t tokens) {
  const auto layers = std::max<int64_t>(1, std::ssize(config.attention_layers));
  return tokens * layers * config.d_model * int64_t{2 * sizeof(float)};
}

absl::StatusOr<std::unique_ptr<TimedModel>> MakeTimedDecoder(Backend& backend,
                                                             const GenerateBenchmark& benchmark) {
  return TimedDecoder::Make(backend, benchmark, SteadySeconds);
}

absl::StatusOr<BenchReport> BenchGenerate(Machine& machine, const GenerateBenchmark& benchmark) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto decoder,
                              TimedDecoder::Make(*machine.backend, benchmark, machine.clock));
  TimedModel* const model = decoder.get();
  BenchReport report;
  HIPPODROME_ASSIGN_OR_RETURN(report.ceilings, RunRounds(machine, {&model, 1}, benchmark.repeats));
  report.results = decoder->Results(report.ceilings);
  HIPPODROME_ASSIGN_OR_RETURN(report.shares, decoder->MeasureShares(machine));
  return report;
}

}  // namespace hippodrome
