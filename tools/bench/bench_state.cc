#include "tools/bench/bench_state.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/generator.h"
#include "engine/state/decode_state.h"
#include "engine/state/saved_state.h"
#include "engine/state/state_file.h"
#include "tools/bench/bench_generate.h"
#include "tools/bench/best_time.h"

namespace hippodrome {
namespace {

constexpr double kMilliseconds = 1e3;  // per second

std::vector<int32_t> Prompt(const H3Config& config, int64_t tokens, int64_t seed) {
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < tokens; ++i) {
    prompt.push_back(static_cast<int32_t>((i * 7919 + seed * 104729) % config.vocab_size));
  }
  return prompt;
}

int64_t Bytes(const SavedState& state) {
  int64_t floats = 0;
  for (const SavedLayer& layer : state.layers) {
    floats += std::ssize(layer.keys) + std::ssize(layer.values);
    for (const std::vector<float>& array : layer.arrays) floats += std::ssize(array);
  }
  return floats * static_cast<int64_t>(sizeof(float));
}

// Seconds from admission to the first token; the sequence is gone then.
double FirstToken(Generator& generator, GenerationRequest request) {
  BestTime time;
  time.Run([&] {
    std::vector<TokenEvent> events;
    const SequenceId id = *generator.Admit(std::move(request));
    generator.Prefill(Generator::Clock::time_point::max(), events);
    generator.Release(id);
  });
  return time.seconds();
}

// What a benchmark of states runs on.
struct Bench {
  Machine& machine;
  const StateBenchmark& benchmark;
  const HybridH3& model;
  std::vector<BenchResult> results = {};

  void Add(const std::string& name, double seconds, double limit) {
    results.push_back({.name = name,
                       .length = benchmark.tokens,
                       .weights = WeightsName(benchmark.weights),
                       .value = seconds * kMilliseconds,
                       .unit = "ms",
                       .limit = limit * kMilliseconds,
                       .fraction = limit / seconds});
  }
  absl::StatusOr<std::unique_ptr<Generator>> NewGenerator() const {
    const int64_t rows = 4 * (benchmark.tokens + benchmark.rest + kPageTokens);
    return Generator::Create(*machine.backend, model,
                             {.max_sequences = 2,
                              .key_value_bytes = KeyValueBytes(benchmark.config, rows),
                              .prefix_slots = 8});
  }
  absl::StatusOr<SavedState> SomeState() const;
  absl::Status MoveState(const SavedState& saved);
  absl::Status MeetPrompts();
};

absl::StatusOr<SavedState> Bench::SomeState() const {
  HIPPODROME_ASSIGN_OR_RETURN(const auto generator, NewGenerator());
  GenerationRequest request{.prompt = Prompt(benchmark.config, benchmark.tokens, 0),
                            .max_tokens = 2};
  request.ignore_eos = true;
  HIPPODROME_RETURN_IF_ERROR(generator->Validate(request));
  HIPPODROME_ASSIGN_OR_RETURN(const SequenceId id, generator->Admit(request));
  std::vector<TokenEvent> events;
  generator->Prefill(Generator::Clock::time_point::max(), events);
  return generator->Save(id);
}

absl::Status Bench::MoveState(const SavedState& saved) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto generator, NewGenerator());
  const StateLayout& layout = generator->state_layout();
  const int64_t pages = PagesFor(saved.position);
  const auto state = model.NewState(*machine.backend, 2, 2 * pages, kPageTokens);
  SequenceState sequence = *state->Reserve(pages);
  const auto bytes = static_cast<size_t>(Bytes(saved));
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 0);
  BestTime copy, fork, exported, imported, written, read;
  for (int i = 0; i < benchmark.repeats; ++i) {
    copy.Run([&] { std::memcpy(to.data(), from.data(), bytes); });
    imported.Run([&] {
      state->Import(saved, sequence);
      machine.backend->Wait();
    });
    fork.Run([&] {
      SequenceState other = *state->Fork(sequence, saved.position, pages);
      machine.backend->Wait();
      state->Release(other);
    });
    exported.Run([&] { (void)state->Export(sequence, saved.position, layout); });
    std::string file;
    written.Run([&] { file = *WriteStateFile(saved, layout); });
    read.Run([&] { (void)*ReadStateFile(file, layout); });
  }
  Add("copy", copy.seconds(), copy.seconds());
  const double slot_part =
      static_cast<double>(state->bytes_per_slot()) / static_cast<double>(bytes);
  Add("fork", fork.seconds(), slot_part * copy.seconds());
  Add("export", exported.seconds(), copy.seconds());
  Add("import", imported.seconds(), copy.seconds());
  Add("write", written.seconds(), copy.seconds());
  Add("read", read.seconds(), copy.seconds());
  return absl::OkStatus();
}

absl::Status Bench::MeetPrompts() {
  HIPPODROME_ASSIGN_OR_RETURN(const auto generator, NewGenerator());
  const int64_t tokens = benchmark.tokens + benchmark.rest;
  double miss = 0;
  double hit = 0;
  for (int i = 0; i < benchmark.repeats; ++i) {
    GenerationRequest known{.prompt = Prompt(benchmark.config, tokens, i), .max_tokens = 1};
    known.cache_marks = {benchmark.tokens};
    HIPPODROME_RETURN_IF_ERROR(generator->Validate(known));
    GenerationRequest longer = known;
    for (int64_t j = benchmark.tokens; j < tokens; ++j)
      longer.prompt[j] = (longer.prompt[j] + 1) % static_cast<int32_t>(benchmark.config.vocab_size);
    generator->ClearPrefixes();
    const double cold = FirstToken(*generator, std::move(known));
    const double warm = FirstToken(*generator, std::move(longer));
    if (i == 0 || cold < miss) miss = cold;
    if (i == 0 || warm < hit) hit = warm;
  }
  Add("miss", miss, miss);
  Add("hit", hit, miss * static_cast<double>(benchmark.rest) / static_cast<double>(tokens));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BenchReport> BenchState(Machine& machine, const StateBenchmark& benchmark) {
  HIPPODROME_ASSIGN_OR_RETURN(
      const BenchModel loaded,
      LoadBenchModel(*machine.backend, benchmark.config, benchmark.weights));
  Bench bench{machine, benchmark, *loaded.model};
  HIPPODROME_ASSIGN_OR_RETURN(const SavedState saved, bench.SomeState());
  HIPPODROME_RETURN_IF_ERROR(bench.MoveState(saved));
  HIPPODROME_RETURN_IF_ERROR(bench.MeetPrompts());
  BenchReport report;
  report.ceilings = machine.measure_ceilings();
  report.results = std::move(bench.results);
  return report;
}

}  // namespace hippodrome
