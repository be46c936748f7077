#include "engine/generator.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/adjusted_tokens.h"
#include "engine/base/check_range.h"
#include "engine/base/field_error.h"
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
  bool decoding = false;                        // prompt done, not finished
  std::optional<AdjustedTokens> adjusted = {};  // where its request changes logits
  std::vector<TokenScores> prompt_scores = {};  // so far

  int64_t length() const { return static_cast<int64_t>(request.prompt.size()) + generated; }
  HowToChoose how() const {
    HowToChoose how = {.sampling = {request.sampling, length()}, .likeliest = request.likeliest};
    if (adjusted) how.adjustments = adjusted->adjustments();
    return how;
  }
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
        prompt_logits(backend.NewTensor(this->state->slots(), model.config().padded_vocab_size)),
        next_tokens(backend.NewIndices(1, this->state->slots())),
        scorer(backend, model.config().vocab_size, this->state->slots()) {}

  bool has_attention() const { return !model.config().attention_layers.empty(); }
  Footprint Bytes(int64_t slots, int64_t pages) const;
  Footprint Cost(int64_t prompt_tokens, int64_t max_tokens) const;
  absl::Status Validate(const GenerationRequest& request) const;

  void BeginChunk();
  void Pace();
  bool SkipUnscored();
  void ScoreBlock();
  void FinishChunk(std::vector<TokenEvent>& events);
  void SampleFirst(std::vector<TokenEvent>& events);
  void Append(SequenceId id, TokenChoice choice, std::vector<TokenEvent>& events);
  void Drop(SequenceId id);

  Backend& b;
  const HybridH3& model;
  std::unique_ptr<DecodeState> state;
  std::map<SequenceId, Sequence> sequences;
  SequenceId next_id = 1;

  std::deque<SequenceId> prompts;  // in turn
  PrefillChunk prefill;
  std::vector<SequenceId> chunk;  // whose prompts are in the chunk in progress; empty: none is
  int64_t scored_rows = 0;        // of the chunk, once it is through the layers

  DecodeStep step;
  OwnedTensor prompt_logits;  // [max_sequences, padded V]
  OwnedTensor next_tokens;    // kI32 [1, max_sequences], of rows that are scored
  TokenScorer scorer;
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
  HIPPODROME_RETURN_IF_ERROR(CheckLogitChanges(request.changes, config.vocab_size));
  if (const int32_t k = request.likeliest.value_or(0); k < 0 || k > kMaxLikeliest) {
    return FieldError("logprobs",
                      std::to_string(k) + " is not in [0, " + std::to_string(kMaxLikeliest) + "]");
  }
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
    if ((std::ssize(parts) + 1) * tokens > prefill.max_rows()) break;
    parts.push_back({.tokens = std::span<const int32_t>(s.request.prompt).subspan(start, tokens),
                     .start = start,
                     .sequence = &s.state});
    members.push_back(id);
  }
  prefill.Begin(parts);
  scored_rows = 0;
  chunk.swap(members);  // last: without memory there is no chunk in progress
}

// A device works behind the host's back: without waiting, the clock would tell nothing. Small
// layers are not worth a wait each.
void Generator::Impl::Pace() {
  if (prefill.done() || prefill.rows() >= kPacedRows) b.Wait();
}

// Goes to the next row of the chunk that is to be scored; false when there is none. The last token
// of a prompt has no next one to be scored.
bool Generator::Impl::SkipUnscored() {
  const int64_t tokens = prefill.TokensOf(0);
  for (; scored_rows < std::ssize(chunk) * tokens;
       scored_rows = (scored_rows / tokens + 1) * tokens) {
    const auto found = sequences.find(chunk[static_cast<size_t>(scored_rows / tokens)]);
    if (found == sequences.end() || !found->second.request.score_prompt) continue;
    const Sequence& s = found->second;
    const int64_t next = s.prefilled + scored_rows % tokens + 1;
    if (next < std::ssize(s.request.prompt)) return true;
  }
  return false;
}

// Rows of one prompt, as many as there is room for logits. REQUIRES: SkipUnscored().
void Generator::Impl::ScoreBlock() {
  const int64_t tokens = prefill.TokensOf(0);
  Sequence& s = sequences.at(chunk[static_cast<size_t>(scored_rows / tokens)]);
  const int64_t next = s.prefilled + scored_rows % tokens + 1;
  const int64_t rows = std::min({prompt_logits.view.rows, tokens - scored_rows % tokens,
                                 std::ssize(s.request.prompt) - next});
  const Tensor logits = prompt_logits.view.Rows(0, rows);
  const Tensor targets = next_tokens.view.Cols(0, rows);
  const auto likeliest = std::min<int64_t>(s.request.likeliest.value_or(0), scorer.MostLikeliest());
  prefill.RowLogits(scored_rows, logits);
  b.UploadIndices(std::span<const int32_t>(s.request.prompt).subspan(next, rows), targets);
  scorer.Score(logits, targets, likeliest);
  for (TokenScores& scores : scorer.Download(rows, likeliest)) {
    s.prompt_scores.push_back(std::move(scores));
  }
  scored_rows += rows;
}

void Generator::Impl::FinishChunk(std::vector<TokenEvent>& events) {
  bool finished = false;
  for (const SequenceId id : chunk) {
    const auto found = sequences.find(id);
    if (found == sequences.end()) continue;  // released meanwhile
    Sequence& s = found->second;
    s.prefilled += prefill.TokensOf(0);
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
  std::vector<HowToChoose> how(chunk.size());
  for (size_t i = 0; i < chunk.size(); ++i) {
    how[i].sampling.parameters.temperature = 0;  // for those that are not done
    const auto found = sequences.find(chunk[i]);
    if (found != sequences.end() && found->second.decoding) how[i] = found->second.how();
  }
  std::vector<TokenChoice> chosen = step.Choose(logits, how);
  for (size_t i = 0; i < chunk.size(); ++i) {
    const auto found = sequences.find(chunk[i]);
    if (found == sequences.end() || !found->second.decoding) continue;
    Append(chunk[i], std::move(chosen[i]), events);
  }
}

void Generator::Impl::Append(SequenceId id, TokenChoice choice, std::vector<TokenEvent>& events) {
  Sequence& s = sequences.at(id);
  const int32_t token = choice.token;
  s.last_token = token;
  ++s.generated;
  if (s.adjusted && token >= 0) s.adjusted->Append(token);
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
  events.push_back(std::move(event));
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
  Sequence sequence{.request = std::move(request)};
  const GenerationRequest& r = sequence.request;
  if (r.changes.any()) sequence.adjusted.emplace(r.changes, r.prompt);
  if (r.score_prompt) sequence.prompt_scores.emplace_back();  // the first token has none
  const SequenceId id = impl_->next_id++;
  const auto entry = impl_->sequences.emplace(id, std::move(sequence)).first;
  std::optional<SequenceState> state;
  absl::Cleanup leave = [&] {  // also where memory runs out
    if (state) impl_->state->Release(*state);
    impl_->sequences.erase(entry);
  };
  state = impl_->state->Reserve(cost.pages);
  if (!state) {
    return ResourceExhausted("no room now: needs 1 slot and " + std::to_string(cost.pages) +
                             " pages, free are " + std::to_string(impl_->state->free_slots()) +
                             " and " + std::to_string(impl_->state->free_pages()));
  }
  impl_->prompts.push_back(id);
  entry->second.state = *std::move(state);
  std::move(leave).Cancel();
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
  std::vector<SequenceId> batch;
  std::vector<StepToken> tokens;
  std::vector<HowToChoose> how;
  for (const auto& [id, s] : impl_->sequences) {
    if (!s.decoding) continue;
    batch.push_back(id);
    tokens.push_back({.token = s.last_token, .position = s.length() - 1, .sequence = &s.state});
    how.push_back(s.how());
  }
  if (batch.empty()) return;
  std::vector<TokenChoice> chosen = impl_->step.Next(tokens, how);
  for (size_t i = 0; i < batch.size(); ++i) {
    impl_->Append(batch[i], std::move(chosen[i]), events);
  }
}

void Generator::Release(SequenceId sequence) {
  const auto found = impl_->sequences.find(sequence);
  if (found == impl_->sequences.end()) return;
  impl_->Drop(sequence);
  impl_->state->Release(found->second.state);
  impl_->sequences.erase(found);
}

void Generator::WatchFreed(std::function<void(const LayerStates&, const SequenceState&)> on_freed) {
  impl_->state->WatchFreed(std::move(on_freed));
}

}  // namespace hippodrome
