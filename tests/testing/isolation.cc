#include "tests/testing/isolation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "engine/models/h3/hybrid_h3.h"
#include "tests/testing/freed_state.h"
#include "tests/testing/random_model.h"

namespace hippodrome {
namespace {

constexpr auto kForever = Generator::Clock::time_point::max();
constexpr auto kAtOnce = Generator::Clock::time_point::min();

// Lengths around those of pages, short ones and long ones; one in three is scored. Half of them
// begin as an earlier one does, of the same tenant or not.
GenerationRequest NewRequest(const IsolationOptions& options, int64_t vocabulary,
                             std::span<const GenerationRequest> earlier, std::mt19937& random) {
  const auto below = [&](int64_t count) { return static_cast<int64_t>(random() % count); };
  const auto seed = static_cast<uint32_t>(random());
  int64_t prompt = 1 + below(below(2) == 0 ? 20 : options.longest_prompt);
  if (below(4) == 0) prompt = std::min(options.longest_prompt, 63 + below(4));
  GenerationRequest request{.prompt = RandomIds(prompt, vocabulary, seed),
                            .max_tokens = 1 + below(options.most_new_tokens)};
  if (!earlier.empty() && below(2) == 0) {
    const std::vector<int32_t>& other = earlier[below(std::ssize(earlier))].prompt;
    const int64_t same = below(1 + std::min(prompt, std::ssize(other)));
    std::copy_n(other.begin(), same, request.prompt.begin());
  }
  request.sampling.temperature = below(2) == 0 ? 0.0f : 1.2f;
  request.sampling.seed = seed;
  request.ignore_eos = true;
  request.score_prompt = below(3) == 0;
  if (request.score_prompt) request.likeliest = static_cast<int32_t>(below(3));
  return request;
}

// Whether two answers are the same, their log probabilities within a tolerance.
class Sameness {
 public:
  explicit Sameness(float tolerance) : tolerance_(tolerance) {}

  bool operator()(const TokenEvent& a, const TokenEvent& b) const {
    return a.token == b.token && a.finish == b.finish && Same(a.scores, b.scores) &&
           std::equal(a.prompt_scores.begin(), a.prompt_scores.end(), b.prompt_scores.begin(),
                      b.prompt_scores.end(),
                      [this](const auto& x, const auto& y) { return Same(x, y); });
  }

 private:
  bool Near(float a, float b) const { return a == b || std::abs(a - b) <= tolerance_; }
  bool Same(const TokenScores& a, const TokenScores& b) const {
    return Near(a.log_probability, b.log_probability) &&
           std::equal(a.likeliest.begin(), a.likeliest.end(), b.likeliest.begin(),
                      b.likeliest.end(), [this](const auto& x, const auto& y) {
                        return x.token == y.token && Near(x.log_probability, y.log_probability);
                      });
  }
  bool Same(const std::optional<TokenScores>& a, const std::optional<TokenScores>& b) const {
    return a.has_value() == b.has_value() && (!a || Same(*a, *b));
  }

  float tolerance_;
};

class Isolation {
 public:
  Isolation(Backend& backend, const HybridH3& model, const IsolationOptions& options, uint32_t seed)
      : backend_(backend), model_(model), options_(options), random_(seed) {
    for (int64_t i = 0; i < options.tenants * options.requests; ++i) {
      requests_.push_back(NewRequest(options, model.config().vocab_size, requests_, random_));
      requests_.back().cache_salt = "tenant " + std::to_string(i % options.tenants);
      alone_.push_back(Alone(requests_.back()));
    }
    generator_ = Generator::Create(backend, model, options.generator).value();
    generator_->WatchFreed([this](const LayerStates& layers, const SequenceState& freed) {
      FillFreed(backend_, layers, freed);
      result_.freed_slots += freed.slot >= 0 ? 1 : 0;
      result_.freed_pages += std::ssize(freed.pages);
    });
  }

  IsolationResult Run(int64_t operations) {
    for (int64_t i = 0; i < operations && result_.fault.empty(); ++i) DoSomething();
    while (!running_.empty() && result_.fault.empty()) Advance(true);
    result_.hits = generator_->prefixes().hits;
    result_.evicted = generator_->prefixes().evictions;
    result_.accepted = generator_->drafts().accepted;
    generator_->ClearPrefixes();
    const int64_t left = generator_->used().bytes + generator_->held().bytes;
    if (result_.fault.empty() && left != 0) {
      result_.fault = "the end holds " + std::to_string(left) + " bytes";
    }
    return result_;
  }

 private:
  struct Running {
    size_t request = 0;
    size_t events = 0;  // that came
  };

  std::vector<TokenEvent> Alone(const GenerationRequest& request) {
    GeneratorOptions options = options_.generator;
    options.max_sequences = 1;
    options.prefix_slots = 0;
    options.speculate = false;
    const auto generator = Generator::Create(backend_, model_, options).value();
    std::vector<TokenEvent> events;
    generator->Admit(request).value();
    generator->Prefill(kForever, events);
    while (events.back().finish == FinishReason::kNone) generator->Step(events);
    return events;
  }

  void DoSomething() {
    const uint32_t what = random_() % 11;
    if (what < 2) {
      Admit(random_() % requests_.size());
    } else if (what == 2) {
      Admit(latest_);  // likely to follow it
    } else if (what == 3) {
      Cancel();
    } else if (what == 4 && options_.saves) {
      SaveAndGoOn();
    } else {
      Advance(what < 8);
    }
  }

  void Admit(size_t request) {
    latest_ = request;
    const auto id = generator_->Admit(requests_[request]);
    (id.ok() ? result_.admitted : result_.refused) += 1;
    if (id.ok()) running_.emplace(*id, Running{request});
  }

  // A sequence that has a token leaves, and comes back as what was saved of it.
  void SaveAndGoOn() {
    const auto found = std::find_if(running_.begin(), running_.end(),
                                    [](const auto& entry) { return entry.second.events > 0; });
    if (found == running_.end()) return;
    const Running running = found->second;
    auto saved = generator_->Save(found->first);
    if (!saved.ok()) {
      result_.fault = "request " + std::to_string(running.request) + " after token " +
                      std::to_string(running.events) + ": " + saved.status().ToString();
      return;
    }
    generator_->Release(found->first);
    running_.erase(found);
    GenerationRequest rest = requests_[running.request];
    rest.prompt = {};
    rest.score_prompt = false;
    rest.max_tokens -= static_cast<int64_t>(running.events);
    rest.start = std::make_shared<SavedState>(*std::move(saved));
    running_.emplace(generator_->Admit(std::move(rest)).value(), running);
    ++result_.saved;
  }

  void Cancel() {
    if (running_.empty()) return;
    const auto victim = std::next(running_.begin(), random_() % running_.size());
    generator_->Release(victim->first);
    running_.erase(victim);
    ++result_.cancelled;
  }

  // A piece of the prompts, and a token more for each sequence, or one of these.
  void Advance(bool step) {
    std::vector<TokenEvent> events;
    const bool prefilling = generator_->prefilling();
    generator_->Prefill(kAtOnce, events);
    if (prefilling) result_.beside += generator_->stepped();
    if (step) generator_->Step(events);
    for (const TokenEvent& event : events) Take(event);
  }

  void Take(const TokenEvent& event) {
    Running& running = running_.at(event.sequence);
    const TokenEvent& expected = alone_[running.request][running.events++];
    if (!Sameness(options_.tolerance)(event, expected) && result_.fault.empty()) {
      result_.fault = "request " + std::to_string(running.request) + ", token " +
                      std::to_string(running.events) + ": " + std::to_string(event.token) +
                      ", alone " + std::to_string(expected.token);
    }
    ++result_.tokens;
    result_.scored += std::ssize(event.prompt_scores);
    const bool first = running.events == 1;
    if (first &&
        generator_->Cached(event.sequence) == std::ssize(requests_[running.request].prompt))
      ++result_.followers;
    if (event.finish == FinishReason::kNone) return;
    generator_->Release(event.sequence);
    running_.erase(event.sequence);
    ++result_.finished;
  }

  Backend& backend_;
  const HybridH3& model_;
  const IsolationOptions options_;
  std::mt19937 random_;
  std::vector<GenerationRequest> requests_;
  std::vector<std::vector<TokenEvent>> alone_;  // what comes of each
  std::unique_ptr<Generator> generator_;
  std::map<SequenceId, Running> running_;
  size_t latest_ = 0;  // request that was to be admitted
  IsolationResult result_;
};

}  // namespace

IsolationResult RunIsolation(Backend& backend, const HybridH3& model,
                             const IsolationOptions& options, int64_t operations, uint32_t seed) {
  return Isolation(backend, model, options, seed).Run(operations);
}

}  // namespace hippodrome
