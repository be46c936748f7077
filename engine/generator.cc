#include "engine/generator.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/decode_state.h"
#include "engine/decode_step.h"
#include "engine/models/hybrid_h3.h"
#include "engine/prefill_chunk.h"
#include "engine/status.h"

namespace hippodrome {
namespace {

constexpr int64_t kPageTokens = 64;

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

absl::Status ValidateSampling(const SamplingParameters& s) {
  if (!(s.temperature >= 0) || !std::isfinite(s.temperature)) {
    return InvalidArgument("temperature must be a finite number of at least 0");
  }
  if (s.top_k < 0) return InvalidArgument("top_k must be at least 0");
  if (!(s.top_p > 0 && s.top_p <= 1)) return InvalidArgument("top_p must be in (0, 1]");
  if (!(s.min_p >= 0 && s.min_p <= 1)) return InvalidArgument("min_p must be in [0, 1]");
  return absl::OkStatus();
}

}  // namespace

struct Generator::Impl {
  Impl(Backend& backend, const HybridH3& model, std::unique_ptr<DecodeState> state)
      : b(backend),
        model(model),
        state(std::move(state)),
        prefill(backend, model),
        step(backend, model, this->state->slots()),
        prompt_logits(backend.NewTensor(1, model.config().padded_vocab_size)),
        tokens(backend.NewIndices(1, this->state->slots())) {}

  bool has_attention() const { return !model.config().attention_layers.empty(); }
  Footprint Bytes(int64_t slots, int64_t pages) const;
  Footprint Cost(int64_t prompt_tokens, int64_t max_tokens) const;
  absl::Status Validate(const GenerationRequest& request) const;

  void BeginChunk(SequenceId id);
  void FinishChunk(std::vector<TokenEvent>& events);
  void Sample(Tensor logits, const std::vector<std::pair<SequenceId, Sequence*>>& batch,
              std::vector<TokenEvent>& events);

  Backend& b;
  const HybridH3& model;
  std::unique_ptr<DecodeState> state;
  std::map<SequenceId, Sequence> sequences;
  SequenceId next_id = 1;

  std::deque<SequenceId> prompts;  // in turn; the front one owns the chunk in progress, if any
  PrefillChunk prefill;
  bool chunk_open = false;

  DecodeStep step;
  OwnedTensor prompt_logits;  // [1, padded V]
  OwnedTensor tokens;         // kI32 [1, max_sequences]
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
  return Bytes(1, (rows + kPageTokens - 1) / kPageTokens);
}

absl::Status Generator::Impl::Validate(const GenerationRequest& request) const {
  const H3Config& config = model.config();
  if (request.prompt.empty()) return InvalidArgument("the prompt has no tokens");
  if (request.max_tokens < 1) return InvalidArgument("max_tokens must be at least 1");
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    if (request.prompt[i] < 0 || request.prompt[i] >= config.vocab_size) {
      return InvalidArgument("prompt token " + std::to_string(i) + " is " +
                             std::to_string(request.prompt[i]) + ", expected an id in [0, " +
                             std::to_string(config.vocab_size) + ")");
    }
  }
  HIPPODROME_RETURN_IF_ERROR(ValidateSampling(request.sampling));
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

void Generator::Impl::BeginChunk(SequenceId id) {
  Sequence& s = sequences.at(id);
  prefill.Begin(s.request.prompt, s.prefilled, s.state);
  chunk_open = true;
}

void Generator::Impl::FinishChunk(std::vector<TokenEvent>& events) {
  const SequenceId id = prompts.front();
  Sequence& s = sequences.at(id);
  s.prefilled += prefill.rows();
  chunk_open = false;
  prompts.pop_front();
  if (s.prefilled < static_cast<int64_t>(s.request.prompt.size())) {
    prompts.push_back(id);
    return;
  }
  prefill.LastLogits(prompt_logits);
  s.decoding = true;
  Sample(prompt_logits, {{id, &s}}, events);
}

void Generator::Impl::Sample(Tensor logits,
                             const std::vector<std::pair<SequenceId, Sequence*>>& batch,
                             std::vector<TokenEvent>& events) {
  std::vector<SamplingParameters> parameters;
  std::vector<int64_t> positions;
  for (const auto& [id, s] : batch) {
    parameters.push_back(s->request.sampling);
    positions.push_back(s->length());
  }
  const Tensor chosen_row = tokens.view.Cols(0, static_cast<int64_t>(batch.size()));
  b.Sample(logits, model.config().vocab_size, parameters, positions, chosen_row);
  std::vector<int32_t> chosen(batch.size());
  b.DownloadIndices(chosen_row, chosen);
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto& [id, s] = batch[i];
    s->last_token = chosen[i];
    ++s->generated;
    TokenEvent event{.sequence = id, .token = chosen[i]};
    if (chosen[i] == model.config().eos_token_id && !s->request.ignore_eos) {
      event.finish = FinishReason::kEndOfText;
    } else if (s->generated == s->request.max_tokens) {
      event.finish = FinishReason::kLength;
    }
    s->decoding = event.finish == FinishReason::kNone;
    events.push_back(event);
  }
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
  HIPPODROME_RETURN_IF_ERROR(impl_->Validate(request));
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

bool Generator::prefilling() const { return !impl_->prompts.empty(); }

int64_t Generator::decoding() const {
  return std::count_if(impl_->sequences.begin(), impl_->sequences.end(),
                       [](const auto& entry) { return entry.second.decoding; });
}

void Generator::Prefill(Clock::time_point until, std::vector<TokenEvent>& events) {
  while (!impl_->prompts.empty()) {
    if (!impl_->chunk_open) impl_->BeginChunk(impl_->prompts.front());
    impl_->prefill.RunLayer(*impl_->state);
    if (impl_->prefill.done()) impl_->FinishChunk(events);
    if (Clock::now() >= until) return;
  }
}

void Generator::Step(std::vector<TokenEvent>& events) {
  std::vector<std::pair<SequenceId, Sequence*>> batch;
  std::vector<StepToken> tokens;
  for (auto& [id, s] : impl_->sequences) {
    if (!s.decoding) continue;
    batch.emplace_back(id, &s);
    tokens.push_back({.token = s.last_token, .position = s.length() - 1, .sequence = &s.state});
  }
  if (batch.empty()) return;
  impl_->Sample(impl_->step.Run(tokens, *impl_->state), batch, events);
}

void Generator::Release(SequenceId sequence) {
  const auto found = impl_->sequences.find(sequence);
  if (found == impl_->sequences.end()) return;
  const auto prompt = std::find(impl_->prompts.begin(), impl_->prompts.end(), sequence);
  if (prompt != impl_->prompts.end()) {
    if (prompt == impl_->prompts.begin()) impl_->chunk_open = false;
    impl_->prompts.erase(prompt);
  }
  impl_->state->Release(found->second.state);
  impl_->sequences.erase(found);
}

}  // namespace hippodrome
