#include "engine/generator.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/base/status.h"
#include "engine/generation/generator_impl.h"

namespace hippodrome {
namespace {

absl::Status CheckWindow(int64_t window, const H3Config& config) {
  if (window == 0) return absl::OkStatus();
  if (config.attention_layers.empty()) {
    return InvalidArgument("attention_window is " + std::to_string(window) +
                           ", but the model has no attention layers: it streams without end as it "
                           "is");
  }
  if (window >= kWindowBlock) return absl::OkStatus();
  return InvalidArgument("attention_window is " + std::to_string(window) +
                         ", expected 0 or at least " + std::to_string(kWindowBlock));
}

// Null where there are to be no drafts.
absl::StatusOr<std::unique_ptr<Drafter>> MakeDrafter(Backend& backend, const HybridH3& model,
                                                     const GeneratorOptions& options,
                                                     const DecodeState& state) {
  if (!options.speculate && options.draft == nullptr) return nullptr;
  if (state.rewind_block() == 1) {
    return InvalidArgument(
        "states of the model cannot go back to earlier tokens, which drafts need: expected H3 and "
        "attention layers alone, on a processor");
  }
  if (options.draft == nullptr) return MakeTextDrafter();
  return MakeModelDrafter(backend, *options.draft, model, options);
}

}  // namespace

Generator::Impl::Steps Generator::Impl::NextSteps() {
  Steps next;
  for (auto& [id, s] : sequences) {
    if (!s.decoding || !s.ready.empty()) continue;
    cache.Slide(s.state, s.position);
    next.ids.push_back(id);
    next.tokens.push_back({.token = s.tokens.back(), .position = s.position, .sequence = &s.state});
  }
  return next;
}

void Generator::Impl::StepDone(Sequence& s) {
  ++s.position;
  checkpoints.KeepIfDue(s);
}

// families[i]: whose next token is chosen from row i of the chunk's last ones, one after the other.
void Generator::Impl::SampleLast(const std::vector<std::vector<SequenceId>>& families,
                                 std::vector<TokenEvent>& events) {
  const Tensor logits = last_logits.view.Rows(0, std::ssize(families));
  prefill.LastLogits(logits);
  size_t rounds = 0;
  for (const auto& family : families) rounds = std::max(rounds, family.size());
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<HowToChoose> how(families.size());
    for (size_t i = 0; i < families.size(); ++i) {
      how[i].sampling.parameters.temperature = 0;  // for those that choose none
      if (round < families[i].size()) how[i] = sequences.at(families[i][round]).how();
    }
    std::vector<TokenChoice> chosen = step.Choose(logits, how);
    for (size_t i = 0; i < families.size(); ++i) {
      if (round < families[i].size()) Append(families[i][round], std::move(chosen[i]), events);
    }
  }
}

void Generator::Impl::Append(SequenceId id, TokenChoice choice, std::vector<TokenEvent>& events) {
  Sequence& s = sequences.at(id);
  const int32_t token = choice.token;
  ++s.generated;
  if (token >= 0) s.Append(token);
  TokenEvent event{.sequence = id,
                   .token = token,
                   .scores = std::move(choice.scores),
                   .prompt_scores = std::exchange(s.prompt_scores, {})};
  if (token < 0) {
    event.finish = FinishReason::kFailed;
  } else if (token == model.config().eos_token_id && !s.request.ignore_eos) {
    event.finish = FinishReason::kEndOfText;
  } else if (s.generated == s.request.max_tokens) {
    event.finish = FinishReason::kLength;
  }
  s.decoding = event.finish == FinishReason::kNone;
  if (!s.decoding) s.ready.clear();
  events.push_back(std::move(event));
}

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::~Generator() = default;

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(Backend& backend,
                                                             const HybridH3& model,
                                                             const GeneratorOptions& options) {
  if (options.max_sequences < 1) {
    return InvalidArgument("max_sequences is " + std::to_string(options.max_sequences) +
                           ", expected at least 1");
  }
  if (options.prefix_slots < 0 || options.prefix_interval < 1) {
    return InvalidArgument("prefix_slots is " + std::to_string(options.prefix_slots) +
                           " and prefix_interval " + std::to_string(options.prefix_interval) +
                           ", expected at least 0 and 1");
  }
  HIPPODROME_RETURN_IF_ERROR(CheckWindow(options.attention_window, model.config()));
  HIPPODROME_RETURN_IF_ERROR(model.CheckH3State(backend, options.h3_state));
  int64_t pages = 0;
  if (!model.config().attention_layers.empty()) {
    const int64_t page_bytes = model.NewState(backend, 1, 1, kPageTokens)->bytes_per_page();
    pages = options.key_value_bytes / page_bytes;
    if (pages < 1) {
      return InvalidArgument("key_value_bytes is " + std::to_string(options.key_value_bytes) +
                             ", expected at least one page of " + std::to_string(page_bytes));
    }
    pages = std::min<int64_t>(pages, std::numeric_limits<int32_t>::max());
  }
  auto state = model.NewState(backend, options.max_sequences + options.prefix_slots, pages,
                              kPageTokens, options.attention_window, options.h3_state);
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Drafter> drafter,
                              MakeDrafter(backend, model, options, *state));
  return std::unique_ptr<Generator>(new Generator(
      std::make_unique<Impl>(backend, model, options, std::move(state), std::move(drafter))));
}

Footprint Generator::Cost(int64_t tokens_before, int64_t max_tokens) const {
  return impl_->limits.Cost(tokens_before, max_tokens);
}

Footprint Generator::capacity() const { return impl_->limits.capacity(); }

int64_t Generator::step_bytes() const { return impl_->state->bytes_per_step(); }

Footprint Generator::used() const {
  return impl_->limits.Bytes(std::ssize(impl_->sequences), impl_->reserved_pages);
}

Footprint Generator::held() const {
  const DecodeState& state = *impl_->state;
  return impl_->limits.Bytes(state.slots() - state.free_slots(),
                             state.pages() - state.free_pages());
}

absl::Status Generator::Validate(const GenerationRequest& request) const {
  return impl_->limits.Validate(request);
}

absl::StatusOr<SequenceId> Generator::Admit(GenerationRequest request) {
  assert(impl_->limits.Validate(request).ok());
  const Footprint cost = impl_->limits.Cost(TokensBefore(request), request.max_tokens);
  const int64_t free_slots = impl_->max_sequences - std::ssize(impl_->sequences);
  const int64_t free_pages = impl_->state->pages() - impl_->reserved_pages;
  if (free_slots < 1 || free_pages < cost.pages) {
    return ResourceExhausted("no room now: needs 1 slot and " + std::to_string(cost.pages) +
                             " pages, free are " + std::to_string(free_slots) + " and " +
                             std::to_string(free_pages));
  }
  const auto leader =
      std::find_if(impl_->prompts.begin(), impl_->prompts.end(),
                   [&](SequenceId other) { return impl_->sequences.at(other).CanLead(request); });
  const SequenceId id = impl_->next_id++;
  Sequence& s = impl_->sequences.try_emplace(id, std::move(request), cost).first->second;
  impl_->reserved_pages += cost.pages;
  if (s.request.start) s.exact = GoesOnExactly(*s.request.start, impl_->arithmetic);
  const auto beginner =
      std::find_if(impl_->prompts.begin(), impl_->prompts.end(),
                   [&](SequenceId other) { return impl_->sequences.at(other).CanBegin(s); });
  absl::Cleanup leave = [&] { Release(id); };  // where memory runs out
  if (s.prompt_done()) {
    impl_->Start(s);
    s.request.start.reset();
    s.decoding = true;
  } else if (leader != impl_->prompts.end()) {
    impl_->sequences.at(*leader).followers.push_back(id);
    s.leader = *leader;
  } else if (beginner != impl_->prompts.end()) {
    impl_->sequences.at(*beginner).waiting.push_back(id);
    s.beginner = *beginner;
  } else {
    impl_->prompts.push_back(id);
  }
  std::move(leave).Cancel();
  return id;
}

int64_t Generator::Remaining(SequenceId sequence) const {
  const Sequence& s = impl_->sequences.at(sequence);
  const SequenceId other = s.leader != 0 ? s.leader : s.beginner;
  const Sequence& taking_in = other == 0 ? s : impl_->sequences.at(other);
  const int64_t prompt = std::max<int64_t>(0, s.prompt_end - taking_in.position);
  return prompt + s.request.max_tokens - s.generated;
}

int64_t Generator::ready() const {
  return std::ranges::count_if(impl_->sequences,
                               [](const auto& entry) { return !entry.second.ready.empty(); });
}

DraftCounts Generator::drafts() const { return impl_->drafts; }

bool Generator::prefilling() const { return !impl_->prompts.empty(); }

int64_t Generator::decoding() const { return impl_->decoding(); }

int64_t Generator::stepped() const { return std::ssize(impl_->stepping); }

void Generator::Prefill(Clock::time_point until, std::vector<TokenEvent>& events) {
  while (!impl_->prompts.empty()) {
    if (impl_->chunk.empty()) impl_->BeginChunk();
    if (!impl_->stepping.empty()) return impl_->FinishTogether(events);
    if (!impl_->prefill.done()) {
      impl_->prefill.RunLayer(*impl_->state);
      impl_->Pace();
    } else if (impl_->SkipUnscored()) {
      impl_->ScoreBlock();
    }
    if (impl_->prefill.done() && !impl_->SkipUnscored()) impl_->FinishChunk(events);
    if (Clock::now() >= until) return;
  }
}

void Generator::Step(std::vector<TokenEvent>& events) {
  if (impl_->GiveReady(events)) return;
  const Impl::Steps steps = impl_->NextSteps();
  if (steps.ids.empty()) return;
  if (impl_->drafter) return impl_->StepWithDrafts(steps, events);
  std::vector<HowToChoose> how;
  for (const SequenceId id : steps.ids) how.push_back(impl_->sequences.at(id).how());
  std::vector<TokenChoice> chosen = impl_->step.Next(steps.tokens, how);
  for (size_t i = 0; i < steps.ids.size(); ++i) {
    impl_->StepDone(impl_->sequences.at(steps.ids[i]));
    impl_->Append(steps.ids[i], std::move(chosen[i]), events);
  }
}

void Generator::Release(SequenceId sequence) {
  const auto found = impl_->sequences.find(sequence);
  if (found == impl_->sequences.end()) return;
  Sequence& s = found->second;
  if (!s.followers.empty()) {
    impl_->HandOver(sequence, impl_->HeirOf(s));
  } else if (!s.waiting.empty()) {  // what it took in so far they all begin with
    impl_->HandOver(sequence, s.waiting.front());
  }
  if (s.leader != 0) std::erase(impl_->sequences.at(s.leader).followers, sequence);
  if (s.beginner != 0) std::erase(impl_->sequences.at(s.beginner).waiting, sequence);
  impl_->Drop(sequence);
  if (impl_->drafter) impl_->drafter->Release(sequence);
  impl_->state->Release(s.state);
  impl_->reserved_pages -= s.cost.pages;
  impl_->sequences.erase(found);
}

absl::StatusOr<SavedState> Generator::Save(SequenceId sequence) const {
  const Sequence& s = impl_->sequences.at(sequence);
  // Whose state is that of `s`.
  const Sequence& holder = s.leader == 0 ? s : impl_->sequences.at(s.leader);
  if (!s.has_last_token()) {
    if (s.generated > 0) return FailedPrecondition("the sequence has failed: it has no state");
    if (!impl_->BetweenParts(s.leader == 0 ? sequence : s.leader)) {
      return FailedPrecondition("no part of the sequence's prompt is taken in, or one is just now");
    }
  }
  SavedState saved{.model = impl_->limits.layout().model,
                   .arithmetic = impl_->arithmetic,
                   .lossy = s.lossy,
                   .exact = s.exact,
                   .position = holder.position,
                   .first_row = impl_->state->FirstSeen(holder.position),
                   .prompt_tokens = std::min(s.prompt_tokens, holder.position),
                   .seed = s.request.sampling.seed};
  if (s.has_last_token()) saved.last_token = s.tokens.back();
  if (s.first == 0) {
    const std::span<const int32_t> tokens = s.Tokens(0, saved.position);
    saved.tokens.assign(tokens.begin(), tokens.end());
  }
  saved.created = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  saved.layers = impl_->state->Export(holder.state, saved.position, impl_->limits.layout());
  saved.checkpoints = s.checkpoints;
  if (!saved.checkpoints.empty() && saved.checkpoints.back().position == saved.position) {
    saved.checkpoints.pop_back();  // the state itself
  }
  return saved;
}

std::string Generator::arithmetic() const { return impl_->arithmetic; }

const StateLayout& Generator::state_layout() const { return impl_->limits.layout(); }

int64_t Generator::Cached(SequenceId sequence) const {
  return impl_->sequences.at(sequence).cached;
}

PrefixCounts Generator::prefixes() const { return impl_->cache.counts(); }

void Generator::ClearPrefixes() { impl_->cache.Clear(); }

void Generator::WatchFreed(std::function<void(const LayerStates&, const SequenceState&)> on_freed) {
  impl_->state->WatchFreed(std::move(on_freed));
}

}  // namespace hippodrome
