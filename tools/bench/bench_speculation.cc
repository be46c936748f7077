#include "tools/bench/bench_speculation.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "engine/base/status.h"
#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/passes/decode_step.h"
#include "engine/passes/prefill_chunk.h"
#include "tools/bench/bench_generate.h"
#include "tools/bench/best_time.h"

namespace hippodrome {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();

absl::StatusOr<SpeculationPrompt> ParsePrompt(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const auto text = [&](const char* name) { return json.contains(name) && json[name].is_string(); };
  if (!json.is_object() || !text("kind") || !text("prompt")) {
    return InvalidArgument("expected an object with the texts kind and prompt");
  }
  SpeculationPrompt prompt{.kind = json["kind"], .text = json["prompt"]};
  if (!json.contains("temperature")) return prompt;
  if (!json["temperature"].is_number() || json["temperature"] < 0) {
    return InvalidArgument("temperature is " + json["temperature"].dump() +
                           ", expected a number from 0 on");
  }
  prompt.temperature = json["temperature"];
  return prompt;
}

std::vector<TracedStep> StepsOf(Generator& generator, GenerationRequest request) {
  std::vector<TracedStep> steps;
  const SequenceId id = generator.Admit(std::move(request)).value();
  std::vector<TokenEvent> events;
  generator.Prefill(kForever, events);
  while (generator.decoding() > 0) {
    const DraftCounts before = generator.drafts();
    const bool computes = generator.ready() == 0;
    generator.Step(events);
    const DraftCounts after = generator.drafts();
    if (!computes) continue;
    steps.push_back({.drafted = static_cast<int32_t>(after.drafted - before.drafted),
                     .accepted = static_cast<int32_t>(after.accepted - before.accepted)});
  }
  generator.Release(id);
  return steps;
}

int64_t TokensOf(const SpeculationTrace& trace) {
  auto tokens = std::ssize(trace.steps);
  for (const TracedStep& step : trace.steps) tokens += step.accepted;
  return tokens;
}

// One sequence, whose tokens are any.
class Replay {
 public:
  Replay(Backend& backend, const HybridH3& model, int64_t tokens)
      : backend_(backend),
        state_(model.NewState(backend, 1, PagesFor(tokens), kPageTokens)),
        chunk_(backend, model),
        step_(backend, model, *state_, state_->rewind_block()),
        sequence_(*state_->Reserve(PagesFor(tokens))) {}

  // Seconds of the steps behind the prompt.
  double Run(int64_t prompt, const std::vector<TracedStep>& steps) {
    state_->Release(sequence_);
    sequence_ = *state_->Reserve(state_->pages());
    const std::vector<int32_t> ids(static_cast<size_t>(prompt), 1);
    for (int64_t start = 0; start < prompt;) {
      const int64_t tokens = chunk_.TokensAt(start, prompt);
      const PrefillPart part{
          .tokens = std::span(ids).subspan(start, tokens), .start = start, .sequence = &sequence_};
      chunk_.Begin({&part, 1}, {});
      while (!chunk_.done()) chunk_.RunLayer(*state_);
      start += tokens;
    }
    backend_.Wait();
    return SecondsOf([&] {
      int64_t position = prompt;
      for (const TracedStep& step : steps) {
        std::vector<StepToken> rows;
        for (int64_t i = 0; i <= step.drafted; ++i) {
          rows.push_back({.token = 1, .position = position + i, .sequence = &sequence_});
        }
        HowToChoose greedy;
        greedy.sampling.parameters.temperature = 0;
        (void)step_.Next(rows, std::vector<HowToChoose>(rows.size(), greedy));
        position += 1 + step.accepted;
      }
    });
  }

 private:
  Backend& backend_;
  std::unique_ptr<DecodeState> state_;
  PrefillChunk chunk_;
  DecodeStep step_;
  SequenceState sequence_;
};

// The texts of one kind, and what they took in each round.
class KindOfText {
 public:
  void Add(const SpeculationTrace& trace) { traces_.push_back(trace); }

  void RunRound(Replay& replay) {
    double drafting = 0, plain = 0;
    for (const SpeculationTrace& trace : traces_) {
      const std::vector<TracedStep> one_by_one(static_cast<size_t>(TokensOf(trace)));
      drafting += replay.Run(trace.prompt, trace.steps);
      plain += replay.Run(trace.prompt, one_by_one);
    }
    ratios_.push_back(plain / drafting);
    plain_.push_back(plain);
  }

  void Report(const std::string& kind, DType weights, std::vector<BenchResult>& results) const {
    int64_t prompts = 0, tokens = 0, steps = 0;
    for (const SpeculationTrace& trace : traces_) {
      prompts += trace.prompt;
      tokens += TokensOf(trace);
      steps += std::ssize(trace.steps);
    }
    BenchResult result{.name = kind + ", one by one",
                       .length = prompts / std::ssize(traces_),
                       .weights = WeightsName(weights),
                       .value = static_cast<double>(tokens) / Median(plain_),
                       .unit = "tokens/s"};
    results.push_back(result);
    result.name = kind + ", drafts";
    result.value = Median(ratios_);
    result.unit = "times that";
    result.limit = static_cast<double>(tokens) / static_cast<double>(steps);
    result.fraction = result.value / result.limit;
    results.push_back(result);
  }

 private:
  std::vector<SpeculationTrace> traces_;
  std::vector<double> ratios_;  // of rounds
  std::vector<double> plain_;
};

}  // namespace

absl::StatusOr<std::vector<SpeculationPrompt>> ParseSpeculationPrompts(std::string_view lines) {
  std::vector<SpeculationPrompt> prompts;
  std::istringstream text{std::string(lines)};
  int64_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    auto prompt = ParsePrompt(line);
    if (!prompt.ok()) {
      return InvalidArgument("line " + std::to_string(number) + ": " + Message(prompt.status()));
    }
    prompts.push_back(*std::move(prompt));
  }
  if (prompts.empty()) return InvalidArgument("there are no prompts");
  return prompts;
}

absl::StatusOr<std::vector<SpeculationTrace>> TraceSpeculation(
    Backend& backend, const std::string& directory, const std::vector<SpeculationPrompt>& prompts,
    int64_t tokens) {
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedDecoder loaded, LoadDecoderDirectory(backend, directory));
  if (loaded.tokenizer == nullptr) {
    return FailedPrecondition(directory + " has no tokenizer files: the prompts are texts");
  }
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto generator,
      Generator::Create(backend, *loaded.model, {.max_sequences = 1, .speculate = true}));
  std::vector<SpeculationTrace> traces;
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerationRequest request{
        .prompt = loaded.tokenizer->Encode(prompts[i].text),
        .max_tokens = tokens,
        .sampling = {.temperature = static_cast<float>(prompts[i].temperature), .seed = i},
        .ignore_eos = true};
    HIPPODROME_RETURN_IF_ERROR(generator->Validate(request));
    SpeculationTrace trace{.kind = prompts[i].kind, .prompt = std::ssize(request.prompt)};
    trace.steps = StepsOf(*generator, std::move(request));
    traces.push_back(std::move(trace));
  }
  return traces;
}

absl::StatusOr<BenchReport> BenchSpeculation(Machine& machine,
                                             const SpeculationBenchmark& benchmark) {
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto model, LoadBenchModel(*machine.backend, benchmark.config, benchmark.weights));
  std::map<std::string, KindOfText> kinds;
  int64_t longest = 0;
  for (const SpeculationTrace& trace : benchmark.traces) {
    kinds[trace.kind].Add(trace);
    longest = std::max(longest, trace.prompt + TokensOf(trace) + kCaptureTokens);
  }
  Replay replay(*machine.backend, *model, longest);
  BenchReport report;
  for (int round = 0; round < benchmark.repeats; ++round) {
    report.ceilings = BetterOf(report.ceilings, machine.measure_ceilings(OfRuns::kBest));
    for (auto& [kind, texts] : kinds) texts.RunRound(replay);
  }
  for (const auto& [kind, texts] : kinds) texts.Report(kind, benchmark.weights, report.results);
  return report;
}

}  // namespace hippodrome
