#include "tools/bench/bench_state.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/generator.h"
#include "engine/passes/decode_step.h"
#include "engine/passes/prefill_chunk.h"
#include "engine/state/decode_state.h"
#include "engine/state/saved_state.h"
#include "engine/state/state_file.h"
#include "tools/bench/bench_generate.h"
#include "tools/bench/best_time.h"

namespace hippodrome {
namespace {

constexpr double kMilliseconds = 1e3;  // per second
constexpr int kMoves = 10;             // in a round: they are short
constexpr int64_t kChoices = 64;       // over one context
constexpr int64_t kChoiceTokens = 16;  // of each its own
constexpr int64_t kRests = 32;         // of prompts that begin alike
constexpr int64_t kDecoding = 8;       // sequences that step beside prompts
constexpr int64_t kColdTokens[] = {100, 500, 1000};
constexpr int64_t kBesideTokens[] = {8, 16, 32, 64, 128, 256};

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

// Seconds from the admission of all to their first tokens; the sequences are gone then.
double FirstTokens(Generator& generator, const std::vector<GenerationRequest>& requests) {
  BestTime time;
  time.Run([&] {
    std::vector<SequenceId> ids;
    for (const GenerationRequest& request : requests) ids.push_back(*generator.Admit(request));
    std::vector<TokenEvent> events;
    generator.Prefill(Generator::Clock::time_point::max(), events);
    for (const SequenceId id : ids) generator.Release(id);
  });
  return time.seconds();
}

double FirstToken(Generator& generator, const GenerationRequest& request) {
  return FirstTokens(generator, {request});
}

GenerationRequest Asking(std::vector<int32_t> prompt) {
  GenerationRequest request{.prompt = std::move(prompt), .max_tokens = 1};
  request.ignore_eos = true;
  return request;
}

// What a benchmark of states runs on.
struct Bench {
  Machine& machine;
  const StateBenchmark& benchmark;
  const HybridH3& model;
  std::vector<BenchResult> results = {};

  void Add(const std::string& name, double seconds, double limit, int64_t length = 0) {
    results.push_back({.name = name,
                       .length = length == 0 ? benchmark.tokens : length,
                       .weights = WeightsName(benchmark.weights),
                       .value = seconds * kMilliseconds,
                       .unit = "ms",
                       .limit = limit * kMilliseconds,
                       .fraction = limit / seconds});
  }
  absl::StatusOr<std::unique_ptr<Generator>> NewGenerator(int64_t sequences = 2,
                                                          int64_t prefix_slots = 8) const {
    const int64_t longest = std::max(benchmark.tokens, kColdTokens[2]) + benchmark.rest;
    const int64_t rows = (sequences + 2) * (longest + 2 * kRests + kPageTokens);
    return Generator::Create(*machine.backend, model,
                             {.max_sequences = sequences,
                              .key_value_bytes = KeyValueBytes(benchmark.config, rows),
                              .prefix_slots = prefix_slots});
  }
  absl::StatusOr<SavedState> SomeState() const;
  absl::Status MoveState(const SavedState& saved);
  absl::Status MeetPrompts();
  absl::Status ChooseAmong();
  absl::Status TakeInRests();
  absl::Status FillTree();
  absl::Status StepBeside(const SavedState& saved);
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
  const auto slot_bytes = static_cast<size_t>(state->bytes_per_slot());
  const std::vector<char> from(std::max(bytes, slot_bytes), 1);
  std::vector<char> to(from.size(), 0);
  BestTime copy, slot, value, fork, exported, imported, written, read;
  for (int i = 0; i < kMoves * benchmark.repeats; ++i) {
    copy.Run([&] { std::memcpy(to.data(), from.data(), bytes); });
    value.Run([&] { const std::vector<SavedLayer> layers = saved.layers; });
    imported.Run([&] {
      state->Import(saved, sequence);
      machine.backend->Wait();
    });
    exported.Run([&] { (void)state->Export(sequence, saved.position, layout); });
    std::string file;
    written.Run([&] { file = *WriteStateFile(saved, layout); });
    read.Run([&] { (void)*ReadStateFile(file, layout); });
  }
  // One behind the other: a slot fits into caches, which what is beside it would clear.
  for (int i = 0; i < kMoves * benchmark.repeats; ++i) {
    slot.Run([&] { std::memcpy(to.data(), from.data(), slot_bytes); });
  }
  for (int i = 0; i < kMoves * benchmark.repeats; ++i) {
    fork.Run([&] {
      SequenceState other = *state->Fork(sequence, saved.position, pages);
      machine.backend->Wait();
      state->Release(other);
    });
  }
  Add("copy", copy.seconds(), copy.seconds());
  Add("copy_slot", slot.seconds(), slot.seconds());
  Add("fork", fork.seconds(), slot.seconds());
  Add("import", imported.seconds(), copy.seconds());
  Add("copy_value", value.seconds(), value.seconds());
  Add("export", exported.seconds(), value.seconds());
  Add("write", written.seconds(), value.seconds());
  Add("read", read.seconds(), value.seconds());
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
    const double cold = FirstToken(*generator, known);
    const double warm = FirstToken(*generator, longer);
    if (i == 0 || cold < miss) miss = cold;
    if (i == 0 || warm < hit) hit = warm;
  }
  Add("miss", miss, miss);
  Add("hit", hit, miss * static_cast<double>(benchmark.rest) / static_cast<double>(tokens));
  return absl::OkStatus();
}

// The log probabilities of many answers to one context, which is taken in once.
absl::Status Bench::ChooseAmong() {
  HIPPODROME_ASSIGN_OR_RETURN(const auto generator, NewGenerator(kChoices, 0));
  const std::vector<int32_t> context = Prompt(benchmark.config, benchmark.tokens, 0);
  std::vector<GenerationRequest> own, choices;
  for (int64_t i = 0; i < kChoices; ++i) {
    GenerationRequest& answer =
        own.emplace_back(Asking(Prompt(benchmark.config, kChoiceTokens, i + 1)));
    answer.score_prompt = true;
    answer.likeliest = 1;
    GenerationRequest& choice = choices.emplace_back(answer);
    choice.prompt.insert(choice.prompt.begin(), context.begin(), context.end());
    choice.score_from = choice.shared_tokens = benchmark.tokens;
  }
  double once = 0, parts = 0, all = 0;
  for (int i = 0; i < benchmark.repeats; ++i) {
    const auto keep = [&](double& best, double seconds) {
      if (i == 0 || seconds < best) best = seconds;
    };
    keep(once, FirstToken(*generator, Asking(context)));
    keep(parts, FirstTokens(*generator, own));
    keep(all, FirstTokens(*generator, choices));
  }
  Add("choices", all, once + parts);
  return absl::OkStatus();
}

// Of prompts that begin with what the tree has: of different lengths, and of their mean.
absl::Status Bench::TakeInRests() {
  // With room for the states that all of them leave: none may cost another the context.
  HIPPODROME_ASSIGN_OR_RETURN(const auto generator, NewGenerator(kRests, 8 * kRests));
  GenerationRequest known = Asking(Prompt(benchmark.config, benchmark.tokens, 0));
  (void)FirstToken(*generator, known);
  double ragged = 0;
  double equal = 0;
  for (int i = 0; i < benchmark.repeats; ++i) {
    std::vector<GenerationRequest> different, same;
    for (int64_t j = 0; j < kRests; ++j) {
      for (const bool differ : {true, false}) {
        const int64_t seed = 1 + (differ ? 0 : kRests) + j + 2 * kRests * i;
        const auto rest = Prompt(benchmark.config, differ ? 2 * j + 1 : kRests, seed);
        GenerationRequest& request = (differ ? different : same).emplace_back(known);
        request.prompt.insert(request.prompt.end(), rest.begin(), rest.end());
      }
    }
    const double one = FirstTokens(*generator, different);
    const double other = FirstTokens(*generator, same);
    if (i == 0 || one < ragged) ragged = one;
    if (i == 0 || other < equal) equal = other;
  }
  Add("ragged", ragged, equal);
  return absl::OkStatus();
}

// Prompts that nobody asked before, with the tree, which keeps states of them, and without.
absl::Status Bench::FillTree() {
  HIPPODROME_ASSIGN_OR_RETURN(const auto with, NewGenerator());
  HIPPODROME_ASSIGN_OR_RETURN(const auto without, NewGenerator(2, 0));
  for (const int64_t tokens : kColdTokens) {
    double filled = 0;
    double plain = 0;
    const int64_t rounds = benchmark.repeats * kColdTokens[2] / tokens;  // short ones are noisy
    for (int64_t i = 0; i < rounds; ++i) {
      const GenerationRequest request = Asking(Prompt(benchmark.config, tokens, tokens + i));
      with->ClearPrefixes();
      const double one = FirstToken(*with, request);
      const double other = FirstToken(*without, request);
      if (i == 0 || one < filled) filled = one;
      if (i == 0 || other < plain) plain = other;
    }
    Add("cold", filled, plain, tokens);
  }
  return absl::OkStatus();
}

// Steps in the pass of a prompt's tokens, and in one of their own behind it: all of sequences that
// are where `saved` is. A step may be repeated, a prompt begins there anew.
absl::Status Bench::StepBeside(const SavedState& saved) {
  Backend& backend = *machine.backend;
  const int64_t pages = PagesFor(benchmark.tokens + kBesideTokens[std::size(kBesideTokens) - 1]);
  const auto state = model.NewState(backend, kDecoding + 1, pages * (kDecoding + 1), kPageTokens);
  std::vector<SequenceState> sequences;
  for (int64_t i = 0; i <= kDecoding; ++i) {
    sequences.push_back(*state->Reserve(pages));
    state->Import(saved, sequences.back());
  }
  SequenceState& prompted = sequences.back();
  std::vector<StepToken> steps;
  for (int64_t i = 0; i < kDecoding; ++i) {
    steps.push_back({.token = 1, .position = benchmark.tokens, .sequence = &sequences[i]});
  }
  PrefillChunk chunk(backend, model);
  DecodeStep step(backend, model, *state, kDecoding);
  const OwnedTensor logits = model.NewLogits(backend, kDecoding + 1);
  for (const int64_t tokens : kBesideTokens) {
    const std::vector<int32_t> ids = Prompt(benchmark.config, tokens, 0);
    const PrefillPart part{.tokens = ids, .start = benchmark.tokens, .sequence = &prompted};
    const auto begin_anew = [&] {
      state->Import(saved, prompted);
      backend.Wait();
    };
    const auto pass = [&](std::span<const StepToken> beside) {
      chunk.Begin({&part, 1}, beside);
      while (!chunk.done()) chunk.RunLayer(*state);
      chunk.LastLogits(logits.view.Rows(0, 1 + std::ssize(beside)));
    };
    BestTime together, apart;
    for (int i = 0; i < benchmark.repeats; ++i) {
      begin_anew();
      together.Run([&] {
        pass(steps);
        backend.Wait();
      });
      begin_anew();
      apart.Run([&] {
        pass({});
        (void)step.Logits(steps);
        backend.Wait();
      });
    }
    Add("beside", together.seconds(), apart.seconds(), tokens);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BenchReport> BenchState(Machine& machine, const StateBenchmark& benchmark) {
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto model, LoadBenchModel(*machine.backend, benchmark.config, benchmark.weights));
  Bench bench{machine, benchmark, *model};
  HIPPODROME_ASSIGN_OR_RETURN(const SavedState saved, bench.SomeState());
  HIPPODROME_RETURN_IF_ERROR(bench.MoveState(saved));
  HIPPODROME_RETURN_IF_ERROR(bench.MeetPrompts());
  HIPPODROME_RETURN_IF_ERROR(bench.ChooseAmong());
  HIPPODROME_RETURN_IF_ERROR(bench.TakeInRests());
  HIPPODROME_RETURN_IF_ERROR(bench.FillTree());
  HIPPODROME_RETURN_IF_ERROR(bench.StepBeside(saved));
  BenchReport report;
  report.ceilings = machine.measure_ceilings(OfRuns::kBest);
  report.results = std::move(bench.results);
  return report;
}

}  // namespace hippodrome
