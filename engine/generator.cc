#include "engine/generator.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/check_range.h"
#include "engine/base/status.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/decode_step.h"
#include "engine/passes/prefill_chunk.h"
#include "engine/state/decode_state.h"

namespace hippodrome {
namespace {

constexpr int64_t kPacedRows = 4096;
constexpr SequenceId kReleased = 0;  // names no sequence

struct Sequence {
  GenerationRequest request;
  SequenceState state;
  int64_t prefilled = 0;  // prompt tokens that are in the state
  int64_t generated = 0;
  int32_t last_token = 0;
  bool decoding = false;  // prompt done, not finished

  int64_t length() const { return static_cast<int64_t>(request.prompt.size()) + generated; }
};

std::string NeverFits(const Footprint& cost, const Footprint& capacity) {
  return "the request needs " + std::to_string(cost.bytes) + " bytes of state (" +
         std::to_string(cost.pages) + " key/value pages of " + std::to_string(kPageTokens) +
         " tokens), but the server has " + std::to_string(capacity.bytes) + " bytes (" +
         std::to_string(capacity.pages) + " pages) in all";
}

}  // namespace

struct Generator::Impl {
  Impl(Backend& backend, const HybridH3& model, std::unique_ptr<DecodeState> state)
      : b(backend),
        model(model),
        state(std::move(state)),
        prefill(backend, model),
        step(backend, model, *this->state, this->state->slots()),
        prompt_logits(backend.NewTensor(this->state->slots(), model.config().padded_vocab_size)) {}

  bool has_attention() const { return !model.config().attention_layers.empty(); }
  Footprint Bytes(int64_t slots, int64_t pages) const;
  Footprint Cost(int64_t prompt_tokens, int64_t max_tokens) const;
  absl::Status Validate(const GenerationRequest& request) const;

  void BeginChunk();
  void Pace();
  void FinishChunk(std::vector<TokenEvent>& events);
  void SampleFirst(std::vector<TokenEvent>& events);
  void Append(SequenceId id, int32_t token, std::vector<TokenEvent>& events);
  void Drop(SequenceId id);

  Backend& b;
  const HybridH3& model;
  std::unique_ptr<DecodeState> state;
  std::map<SequenceId, Sequence> sequences;
  SequenceId next_id = 1;

  std::deque<SequenceId> prompts;  // in turn
  PrefillChunk prefill;
  std::vector<SequenceId> chunk;  // whose prompts are in the chunk in progress; empty: none is

  DecodeStep step;
  OwnedTensor prompt_logits;  // [max_sequences, padded V]
};

Footprint Generator::Impl::Bytes(int64_t slots, int64_t pages) const {
  const int64_t page_bytes = state->bytes_per_page();
  const int64_t limit = std::numeric_limits<int64_t>::max();
  const int64_t slot_bytes = slots * state->bytes_per_slot();
  const bool saturates = page_bytes > 0 && pages > (limit - slot_bytes) / page_bytes;
  return {slots, pages, saturates ? limit : slot_bytes + pages * page_bytes};
}

Footprint Generator::Impl::Cost(int64_t prompt_tokens, int64_t max_tokens) const {
  if (!has_attention()) return Bytes(1, 0);
  // The last new token is never fed back, so it needs no row.
  const int64_t limit = std::numeric_limits<int64_t>::max() - kPageTokens;
  const int64_t rows = max_tokens > limit - prompt_tokens ? limit : prompt_tokens + max_tokens - 1;
  return Bytes(1, PagesFor(rows));
}

absl::Status Generator::Impl::Validate(const GenerationRequest& request) const {
  const H3Config& config = model.config();
  if (request.prompt.empty()) return InvalidArgument("the prompt has no tokens");
  if (request.max_tokens < 1) return InvalidArgument("max_tokens must be at least 1");
  HIPPODROME_RETURN_IF_ERROR(CheckTokenIds("prompt", request.prompt, config.vocab_size));
  const int64_t prompt_tokens = static_cast<int64_t>(request.prompt.size());
  if (config.max_position_embeddings > 0 &&
      request.max_tokens - 1 > config.max_position_embeddings - prompt_tokens) {
    return absl::OutOfRangeError("a prompt of " + std::to_string(prompt_tokens) + " tokens and " +
                                 std::to_string(request.max_tokens) +
                                 " new ones exceed the model's " +
                                 std::to_string(config.max_position_embeddings) + " positions");
  }
  const Footprint cost = Cost(prompt_tokens, request.max_tokens);
  if (cost.pages > state->pages()) {
    return absl::OutOfRangeError(NeverFits(cost, Bytes(state->slots(), state->pages())));
  }
  return absl::OkStatus();
}

// The next prompt in turn, with those behind it that are as far and go as far.
void Generator::Impl::BeginChunk() {
  const auto size = [](const Sequence& s) { return static_cast<int64_t>(s.request.prompt.size()); };
  const Sequence& first = sequences.at(prompts.front());
  const int64_t start = first.prefilled;
  const int64_t tokens = prefill.TokensAt(start, size(first));
  std::vector<PrefillPart> parts;
  std::vector<SequenceId> members;
  for (const SequenceId id : prompts) {
    const Sequence& s = sequences.at(id);
    if (s.prefilled != start || prefill.TokensAt(start, size(s)) != tokens) continue;
    if (static_cast<int64_t>(parts.size()) == prefill.MaxParts(tokens)) break;
    parts.push_back({.prompt = s.request.prompt, .sequence = &s.state});
    members.push_back(id);
  }
  prefill.Begin(parts, start, tokens);
  chunk.swap(members);  // last: without memory there is no chunk in progress
}

// A device works behind the host's back: without waiting, the clock would tell nothing. Small
// layers are not worth a wait each.
void Generator::Impl::Pace() {
  if (prefill.done() || std::ssize(chunk) * prefill.tokens() >= kPacedRows) b.Wait();
}

void Generator::Impl::FinishChunk(std::vector<TokenEvent>& events) {
  bool finished = false;
  for (const SequenceId id : chunk) {
    const auto found = sequences.find(id);
    if (found == sequences.end()) continue;  // released meanwhile
    Sequence& s = found->second;
    s.prefilled += prefill.tokens();
    prompts.erase(std::find(prompts.begin(), prompts.end(), id));
    s.decoding = s.prefilled == static_cast<int64_t>(s.request.prompt.size());
    if (!s.decoding) prompts.push_back(id);
    finished |= s.decoding;
  }
  if (finished) SampleFirst(events);
  chunk.clear();
}

void Generator::Impl::SampleFirst(std::vector<TokenEvent>& events) {
  const Tensor logits = prompt_logits.view.Rows(0, static_cast<int64_t>(chunk.size()));
  prefill.LastLogits(logits);
  std::vector<SamplingRow> rows(chunk.size(), SamplingRow{.parameters = {.temperature = 0}});
  for (size_t i = 0; i < chunk.size(); ++i) {
    const auto found = sequences.find(chunk[i]);
    if (found == sequences.end()) continue;
    rows[i] = {found->second.request.sampling, found->second.length()};
  }
  const std::vector<int32_t> chosen = step.Sample(logits, rows);
  for (size_t i = 0; i < chunk.size(); ++i) {
    const auto found = sequences.find(chunk[i]);
    if (found != sequences.end() && found->second.decoding) Append(chunk[i], chosen[i], events);
  }
}

void Generator::Impl::Append(SequenceId id, int32_t token, std::vector<TokenEvent>& events) {
  Sequence& s = sequences.at(id);
  s.last_token = token;
  ++s.generated;
  TokenEvent event{.sequence = id, .token = token};
  if (token == model.config().eos_token_id && !s.request.ignore_eos) {
    event.finish = FinishReason::kEndOfText;
  } else if (s.generated == s.request.max_tokens) {
    event.finish = FinishReason::kLength;
  }
  s.decoding = event.finish == FinishReason::kNone;
  events.push_back(event);
}

// Takes a sequence out of the queue, and its slot and pages out of the chunk in progress.
void Generator::Impl::Drop(SequenceId id) {
  const auto prompt = std::find(prompts.begin(), prompts.end(), id);
  if (prompt != prompts.end()) prompts.erase(prompt);
  const auto part = std::find(chunk.begin(), chunk.end(), id);
  if (part == chunk.end()) return;
  prefill.Drop(part - chunk.begin());
  *part = kReleased;
  if (std::count(chunk.begin(), chunk.end(), kReleased) == std::ssize(chunk)) chunk.clear();
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
  if (model.config().TakesWholeSequences()) {
    return FailedPrecondition(std::string("the mixer of this model, \"") +
                              Name(model.config().mixer) +
                              "\", has no recurrent step: it can be trained and evaluated, but it "
                              "cannot generate");
  }
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
  auto state = model.NewState(backend, options.max_sequences, pages, kPageTokens);
  return std::unique_ptr<Generator>(
      new Generator(std::make_unique<Impl>(backend, model, std::move(state))));
}

Footprint Generator::Cost(int64_t prompt_tokens, int64_t max_tokens) const {
  return impl_->Cost(prompt_tokens, max_tokens);
}

Footprint Generator::capacity() const {
  return impl_->Bytes(impl_->state->slots(), impl_->state->pages());
}

Footprint Generator::used() const {
  const DecodeState& state = *impl_->state;
  return impl_->Bytes(state.slots() - state.free_slots(), state.pages() - state.free_pages());
}

absl::Status Generator::Validate(const GenerationRequest& request) const {
  return impl_->Validate(request);
}

absl::StatusOr<SequenceId> Generator::Admit(GenerationRequest request) {
  assert(impl_->Validate(request).ok());
  const Footprint cost =
      impl_->Cost(static_cast<int64_t>(request.prompt.size()), request.max_tokens);
  std::optional<SequenceState> state = impl_->state->Reserve(cost.pages);
  if (!state.has_value()) {
    return ResourceExhausted("no room now: needs 1 slot and " + std::to_string(cost.pages) +
                             " pages, free are " + std::to_string(impl_->state->free_slots()) +
                             " and " + std::to_string(impl_->state->free_pages()));
  }
  const SequenceId id = impl_->next_id++;
  impl_->sequences.emplace(id, Sequence{.request = std::move(request), .state = *std::move(state)});
  impl_->prompts.push_back(id);
  return id;
}

int64_t Generator::Remaining(SequenceId sequence) const {
  const Sequence& s = impl_->sequences.at(sequence);
  const auto prompt_tokens = static_cast<int64_t>(s.request.prompt.size());
  return prompt_tokens - s.prefilled + s.request.max_tokens - s.generated;
}

bool Generator::prefilling() const { return !impl_->prompts.empty(); }

int64_t Generator::decoding() const {
  return std::count_if(impl_->sequences.begin(), impl_->sequences.end(),
                       [](const auto& entry) { return entry.second.decoding; });
}

void Generator::Prefill(Clock::time_point until, std::vector<TokenEvent>& events) {
  while (!impl_->prompts.empty()) {
    if (impl_->chunk.empty()) impl_->BeginChunk();
    impl_->prefill.RunLayer(*impl_->state);
    impl_->Pace();
    if (impl_->prefill.done()) impl_->FinishChunk(events);
    if (Clock::now() >= until) return;
  }
}

void Generator::Step(std::vector<TokenEvent>& events) {
  std::vector<SequenceId> batch;
  std::vector<StepToken> tokens;
  for (const auto& [id, s] : impl_->sequences) {
    if (!s.decoding) continue;
    batch.push_back(id);
    tokens.push_back({.token = s.last_token,
                      .position = s.length() - 1,
                      .sequence = &s.state,
                      .sampling = s.request.sampling});
  }
  if (batch.empty()) return;
  const std::vector<int32_t> chosen = impl_->step.Next(tokens);
  for (size_t i = 0; i < batch.size(); ++i) impl_->Append(batch[i], chosen[i], events);
}

void Generator::Release(SequenceId sequence) {
  const auto found = impl_->sequences.find(sequence);
  if (found == impl_->sequences.end()) return;
  impl_->Drop(sequence);
  impl_->state->Release(found->second.state);
  impl_->sequences.erase(found);
}

}  // namespace hippodrome
