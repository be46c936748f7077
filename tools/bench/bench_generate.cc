#include "tools/bench/bench_generate.h"

#include <algorithm>
#include <chrono>

#include "engine/base/status.h"
#include "engine/checkpoint/weights_source.h"
#include "tools/bench/timing_backend.h"

namespace hippodrome {
namespace {

// Prefill() stops after each part when the time is up from the start.
constexpr auto kOnePart = Generator::Clock::time_point::min();
// Prompts of fewer parts say nothing about how speed develops.
constexpr size_t kManyParts = 100;
constexpr int64_t kStepsPerRound = 24;

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The fastest of several rounds.
struct Best {
  double seconds = 0;

  void Take(double round) { seconds = seconds == 0 ? round : std::min(seconds, round); }
};

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
                                     const GenerateBenchmark& benchmark, int64_t batch) {
    GeneratorOptions options{.max_sequences = batch};
    const int64_t rows = benchmark.prompt + kStepsPerRound * (benchmark.repeats + 1) + 64;
    options.key_value_bytes = KeyValueBytes(model.config(), batch * rows);
    Runner runner;
    HIPPODROME_ASSIGN_OR_RETURN(runner.generator_, Generator::Create(backend, model, options));
    for (int64_t i = 0; i < batch; ++i) {
      GenerationRequest request = RandomPrompt(model.config(), benchmark.prompt, i);
      request.max_tokens = kStepsPerRound * (benchmark.repeats + 1) + 2;
      runner.requests_.push_back(std::move(request));
    }
    return runner;
  }

  // Admits and prefills every sequence; when each part (a layer of a chunk) of the last prompt was
  // done, in seconds from its start.
  absl::StatusOr<std::vector<double>> Prefill() {
    std::vector<double> done;
    for (const GenerationRequest& request : requests_) {
      HIPPODROME_RETURN_IF_ERROR(generator_->Validate(request));
      HIPPODROME_RETURN_IF_ERROR(generator_->Admit(request).status());
      done.clear();
      const auto begin = std::chrono::steady_clock::now();
      while (generator_->prefilling()) {
        generator_->Prefill(kOnePart, events_);
        done.push_back(SecondsSince(begin));
      }
    }
    return done;
  }

  // Seconds of kStepsPerRound steps.
  double Step() {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < kStepsPerRound; ++i) {
      events_.clear();
      generator_->Step(events_);
    }
    return SecondsSince(begin);
  }

  const Generator& generator() const { return *generator_; }

 private:
  Runner() = default;

  std::unique_ptr<Generator> generator_;
  std::vector<GenerationRequest> requests_;
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
  void Report(int64_t prompt, DType weights, std::vector<BenchResult>& results) {
    if (first_.empty()) return;
    const auto add = [&](const char* name, std::vector<double>& seconds) {
      std::sort(seconds.begin(), seconds.end());
      results.push_back({.name = name,
                         .length = prompt,
                         .weights = WeightsName(weights),
                         .value = seconds[seconds.size() / 2],
                         .unit = "s, median"});
    };
    add("prefill_first_tenth", first_);
    add("prefill_last_tenth", last_);
  }

 private:
  std::vector<double> first_, last_;
};

// A round of its own, because to time single operations is to wait for each.
absl::StatusOr<std::map<std::string, Shares>> MeasureShares(Backend& backend, const HybridH3& model,
                                                            const GenerateBenchmark& benchmark) {
  std::map<std::string, Shares> shares;
  TimingBackend timing(backend);
  for (const int64_t batch : benchmark.batches) {
    HIPPODROME_ASSIGN_OR_RETURN(Runner runner, Runner::Make(timing, model, benchmark, batch));
    timing.Clear();
    HIPPODROME_ASSIGN_OR_RETURN(const std::vector<double> done, runner.Prefill());
    if (batch == 1) shares["prefill"] = SharesOf(timing, done.back());
    timing.Clear();
    const double seconds = runner.Step();
    shares["decode batch " + std::to_string(batch)] = SharesOf(timing, seconds);
  }
  return shares;
}

}  // namespace

absl::StatusOr<BenchModel> LoadBenchModel(Backend& backend, const H3Config& config, DType weights) {
  RandomWeights source;
  BenchModel loaded;
  HIPPODROME_ASSIGN_OR_RETURN(loaded.model, HybridH3::Load(backend, config, source, weights));
  loaded.types = {weights, backend.NewActivations(1, 1, weights).view.dtype};
  return loaded;
}

int64_t RecurrentBytes(const Generator& generator) {
  // A prompt of 65 tokens takes one page more than one of 1.
  return 2 * generator.Cost(1, 1).bytes - generator.Cost(65, 1).bytes;
}

int64_t KeyValueBytes(const H3Config& config, int64_t tokens) {
  const auto layers = std::max<int64_t>(1, std::ssize(config.attention_layers));
  return tokens * layers * config.d_model * int64_t{2 * sizeof(float)};
}

absl::StatusOr<BenchReport> BenchGenerate(Machine& machine, const GenerateBenchmark& benchmark) {
  Backend& backend = *machine.backend;
  HIPPODROME_ASSIGN_OR_RETURN(const auto loaded,
                              LoadBenchModel(backend, benchmark.config, benchmark.weights));
  const auto& [model, types] = loaded;

  BenchReport report;
  Best prefill;
  std::map<int64_t, Best> decode;
  std::vector<Runner> runners;
  int64_t recurrent_bytes = 0;
  Tenths tenths;
  for (const int64_t batch : benchmark.batches) {
    HIPPODROME_ASSIGN_OR_RETURN(Runner runner, Runner::Make(backend, *model, benchmark, batch));
    HIPPODROME_RETURN_IF_ERROR(runner.Prefill().status());
    recurrent_bytes = RecurrentBytes(runner.generator());
    runners.push_back(std::move(runner));
  }
  for (int round = 0; round < benchmark.repeats; ++round) {
    report.ceilings = BetterOf(report.ceilings, machine.measure_ceilings());
    HIPPODROME_ASSIGN_OR_RETURN(Runner fresh, Runner::Make(backend, *model, benchmark, 1));
    HIPPODROME_ASSIGN_OR_RETURN(const std::vector<double> done, fresh.Prefill());
    prefill.Take(done.back());
    tenths.Take(done);
    for (size_t i = 0; i < runners.size(); ++i) {
      decode[benchmark.batches[i]].Take(runners[i].Step());
    }
  }

  const int64_t prompt = benchmark.prompt;
  const DType weights = benchmark.weights;
  report.results.push_back(Rate({.name = "prefill",
                                 .length = prompt,
                                 .tokens = static_cast<double>(prompt),
                                 .seconds = prefill.seconds},
                                PrefillCost(benchmark.config, 1, prompt, weights), weights,
                                report.ceilings));
  tenths.Report(prompt, weights, report.results);
  for (const auto& [batch, best] : decode) {
    const Cost cost = DecodeCost(benchmark.config, batch, prompt, types, recurrent_bytes);
    report.results.push_back(Rate({.name = "decode",
                                   .length = prompt,
                                   .batch = batch,
                                   .tokens = static_cast<double>(batch),
                                   .seconds = best.seconds / kStepsPerRound},
                                  cost, weights, report.ceilings));
  }
  runners.clear();
  HIPPODROME_ASSIGN_OR_RETURN(report.shares, MeasureShares(backend, *model, benchmark));
  return report;
}

}  // namespace hippodrome
