#include "tools/bench/bench_table7.h"

#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr int32_t kIds = 100;  // prompts of ids below this, as the paper's script makes them

// Seconds from the admission of all prompts to the last token.
absl::StatusOr<double> Run(Generator& generator, const Table7Benchmark& benchmark, int64_t prompt,
                           const Clock& clock) {
  std::vector<SequenceId> ids;
  std::vector<TokenEvent> events;
  const double begin = clock();
  for (int64_t i = 0; i < benchmark.batch; ++i) {
    GenerationRequest request{
        .max_tokens = benchmark.new_tokens, .sampling = {.temperature = 0}, .ignore_eos = true};
    for (int64_t t = 0; t < prompt; ++t) {
      request.prompt.push_back(static_cast<int32_t>((t * 7919 + i * 104729) % kIds));
    }
    HIPPODROME_RETURN_IF_ERROR(generator.Validate(request));
    HIPPODROME_ASSIGN_OR_RETURN(const SequenceId id, generator.Admit(std::move(request)));
    ids.push_back(id);
  }
  generator.Prefill(Generator::Clock::time_point::max(), events);
  while (generator.decoding() > 0) generator.Step(events);
  const double seconds = clock() - begin;
  for (const SequenceId id : ids) generator.Release(id);
  return seconds;
}

// What the ceilings allow: all prompts, then the steps one by one.
double LeastSeconds(const Table7Benchmark& benchmark, int64_t prompt, int64_t state_bytes,
                    const Ceilings& ceilings) {
  double seconds =
      LeastSeconds(PrefillCost(benchmark.config, benchmark.batch, prompt, benchmark.weights),
                   benchmark.weights, ceilings);
  for (int64_t i = 1; i < benchmark.new_tokens; ++i) {
    seconds += LeastSeconds(
        DecodeCost(benchmark.config, benchmark.batch, prompt + i, benchmark.weights, state_bytes),
        benchmark.weights, ceilings);
  }
  return seconds;
}

}  // namespace

absl::StatusOr<BenchReport> BenchTable7(Machine& machine, const Table7Benchmark& benchmark) {
  Backend& backend = *machine.backend;
  HIPPODROME_ASSIGN_OR_RETURN(const auto model,
                              LoadBenchModel(backend, benchmark.config, benchmark.weights));
  BenchReport report;
  report.ceilings = machine.measure_ceilings(OfRuns::kBest);
  for (const int64_t prompt : benchmark.prompts) {
    const int64_t rows = benchmark.batch * (prompt + benchmark.new_tokens + 64);
    const GeneratorOptions options{.max_sequences = benchmark.batch,
                                   .key_value_bytes = KeyValueBytes(benchmark.config, rows),
                                   .h3_state = benchmark.h3_state};
    HIPPODROME_ASSIGN_OR_RETURN(const auto generator, Generator::Create(backend, *model, options));
    HIPPODROME_RETURN_IF_ERROR(Run(*generator, benchmark, prompt, machine.clock).status());
    const BoundShares bounds(machine);
    double seconds = 0;
    for (int i = 0; i < benchmark.repeats; ++i) {
      HIPPODROME_ASSIGN_OR_RETURN(const double run,
                                  Run(*generator, benchmark, prompt, machine.clock));
      seconds += run / benchmark.repeats;
    }
    if (machine.seconds_by_bound) {
      report.shares["table7 " + std::to_string(prompt) + ", by what bounds it"] = bounds.Get();
    }
    const auto tokens = static_cast<double>(benchmark.batch * benchmark.new_tokens);
    const double least = LeastSeconds(benchmark, prompt, generator->step_bytes(), report.ceilings);
    report.results.push_back({.name = "table7",
                              .length = prompt,
                              .batch = benchmark.batch,
                              .weights = WeightsName(benchmark.weights),
                              .value = tokens / seconds,
                              .unit = "tokens/s",
                              .limit = tokens / least,
                              .fraction = least / seconds,
                              .bound_by = bounds.Largest()});
  }
  return report;
}

}  // namespace hippodrome
