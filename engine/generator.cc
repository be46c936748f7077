#include "engine/generator.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/base/status.h"
#include "engine/generation_limits.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/decode_step.h"
#include "engine/passes/prefill_chunk.h"
#include "engine/sequence.h"
#include "engine/state/decode_state.h"

namespace hippodrome {
namespace {

constexpr int64_t kPacedRows = 4096;
constexpr SequenceId kReleased = 0;  // names no sequence

// A sequence whose prompt is in the chunk in progress, and its states on their way to the tree.
struct ChunkPart {
  SequenceId id = kReleased;
  std::vector<PrefillCapture> captures = {};
  std::vector<SequenceState> captured = {};  // by capture
};

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

// Of one checkpoint; 1 of a model whose layers keep nothing but rows.
int64_t CheckpointBytes(const StateLayout& layout) {
  int64_t bytes = 0;
  for (const LayerLayout& layer : layout.layers) {
    for (const StateArray& array : layer.arrays) {
      bytes += array.values() * static_cast<int64_t>(sizeof(float));
    }
  }
  return std::max<int64_t>(1, bytes);
}

// Of `tokens` from `position` of a prompt, how many go before the next checkpoint.
int64_t TokensToCheckpoint(int64_t position, int64_t tokens, int64_t interval) {
  if (interval == 0) return tokens;
  const SequencePart part = {.tokens = static_cast<int32_t>(tokens),
                             .start = static_cast<int32_t>(position)};
  int64_t next = interval - position % interval;
  while (next < tokens && !FitsCapture(part, next)) next += interval;
  return std::min(next, tokens);
}

}  // namespace

struct Generator::Impl {
  Impl(Backend& backend, const HybridH3& model, const GeneratorOptions& options,
       std::unique_ptr<DecodeState> state)
      : b(backend),
        model(model),
        arithmetic(Arithmetic(backend, model.linear_dtype(), state->window())),
        max_sequences(options.max_sequences),
        limits(model, *state, max_sequences, backend.prefill_shape().grid),
        most_checkpoints(options.checkpoint_bytes / CheckpointBytes(limits.layout())),
        state(std::move(state)),
        cache(*this->state, options.prefix_slots, options.prefix_interval),
        prefill(backend, model),
        step(backend, model, *this->state, max_sequences),
        prompt_logits(backend.NewTensor(max_sequences, model.config().padded_vocab_size)),
        next_tokens(backend.NewIndices(1, max_sequences)),
        scorer(backend, model.config().vocab_size, max_sequences) {}

  int64_t decoding() const {
    return std::count_if(sequences.begin(), sequences.end(),
                         [](const auto& entry) { return entry.second.decoding; });
  }
  void Start(Sequence& s);
  void LimitCheckpoints(int64_t most);
  void KeepCheckpoint(Sequence& s);
  void KeepFirstCheckpoint(Sequence& s);
  void KeepCheckpointIfDue(Sequence& s);
  struct Steps;
  Steps NextSteps();
  void BeginChunk();
  void FinishTogether(std::vector<TokenEvent>& events);
  ChunkPart PartOf(SequenceId id, int64_t tokens);
  void DropCaptures(ChunkPart& part);
  void KeepCaptures(ChunkPart& part, const Sequence& s);
  void Pace();
  bool SkipUnscored();
  void ScoreBlock();
  void Share(int64_t part, SequenceId id);
  void ScoreNext(int64_t part, std::span<const SequenceId> family);
  void StopWaiting(Sequence& s);
  void FinishChunk(std::vector<TokenEvent>& events);
  std::vector<SequenceId> PartFollowers(SequenceId id);
  void StepDone(Sequence& s);
  void SampleLast(const std::vector<std::vector<SequenceId>>& families,
                  std::vector<TokenEvent>& events);
  void Append(SequenceId id, TokenChoice choice, std::vector<TokenEvent>& events);
  bool BetweenParts(SequenceId id) const;
  void Drop(SequenceId id);
  SequenceId HeirOf(const Sequence& s) const;
  void HandOver(SequenceId id, SequenceId heir);

  Backend& b;
  const HybridH3& model;
  std::string arithmetic;
  int64_t max_sequences;
  GenerationLimits limits;
  int64_t most_checkpoints;  // of all sequences
  std::unique_ptr<DecodeState> state;
  PrefixCache cache;
  std::map<SequenceId, Sequence> sequences;
  SequenceId next_id = 1;
  int64_t reserved_pages = 0;  // of all sequences

  std::deque<SequenceId> prompts;  // in turn; those of leaders alone
  PrefillChunk prefill;
  std::vector<ChunkPart> chunk;  // in progress; empty: none is
  size_t scored_part = 0;        // of the chunk, once it is through the layers
  int64_t scored_rows = 0;       // of that part
  // Those that decode and step in that chunk. It stays until the next one begins.
  std::vector<SequenceId> stepping;

  DecodeStep step;
  OwnedTensor prompt_logits;  // [max_sequences, padded V]
  OwnedTensor next_tokens;    // kI32 [1, max_sequences], of rows that are scored
  TokenScorer scorer;
};

// The last tokens of all sequences that decode.
struct Generator::Impl::Steps {
  std::vector<SequenceId> ids;
  std::vector<StepToken> tokens;
};

Generator::Impl::Steps Generator::Impl::NextSteps() {
  Steps next;
  for (auto& [id, s] : sequences) {
    if (!s.decoding) continue;
    cache.Slide(s.state, s.position);
    next.ids.push_back(id);
    next.tokens.push_back({.token = s.tokens.back(), .position = s.position, .sequence = &s.state});
  }
  return next;
}

// Gives a sequence its state when its turn comes, not before: the tree may know more by then.
void Generator::Impl::Start(Sequence& s) {
  if (s.state.slot >= 0) return;
  const GenerationRequest& r = s.request;
  if (r.start) {
    s.state = cache.Reserve(s.cost.pages);
    state->Import(*r.start, s.state);
    if (limits.layout().window == 0) s.checkpoints = r.start->checkpoints;
    LimitCheckpoints(most_checkpoints);
    KeepFirstCheckpoint(s);
    return;
  }
  // The token before the first that is scored tells how likely that one is.
  const int64_t most = r.score_prompt ? s.score_at - 1 : s.prompt_end - 1;
  if (r.cache_prompt && most > 0) {
    if (auto hit = cache.Take(r.cache_salt, r.prompt, most, s.cost.pages)) {
      s.state = std::move(hit->state);
      s.position = s.cached = hit->position;
      KeepFirstCheckpoint(s);
    }
  }
  if (s.state.slot < 0) s.state = cache.Reserve(s.cost.pages);
  if (r.cache_prompt) {
    s.wanted = cache.Wanted(r.cache_salt, r.prompt, s.position, r.cache_marks);
  }
}

// Of all sequences, at most so many: the oldest go of the sequence that has most.
void Generator::Impl::LimitCheckpoints(int64_t most) {
  int64_t held = 0;
  for (const auto& [id, s] : sequences) held += std::ssize(s.checkpoints);
  for (; held > most; --held) {
    const auto largest =
        std::max_element(sequences.begin(), sequences.end(), [](const auto& a, const auto& b) {
          return a.second.checkpoints.size() < b.second.checkpoints.size();
        });
    std::vector<Checkpoint>& checkpoints = largest->second.checkpoints;
    checkpoints.erase(checkpoints.begin());
  }
}

// One of a sequence as it is now.
void Generator::Impl::KeepCheckpoint(Sequence& s) {
  if (most_checkpoints < 1) return;
  if (std::ssize(s.checkpoints) == kMaxCheckpoints) s.checkpoints.erase(s.checkpoints.begin());
  LimitCheckpoints(most_checkpoints - 1);
  s.checkpoints.push_back({.position = s.position,
                           .layers = std::make_shared<const std::vector<LayerArrays>>(
                               state->ExportRecurrent(s.state, s.position, limits.layout()))});
}

// Where a sequence begins with tokens that others took in.
void Generator::Impl::KeepFirstCheckpoint(Sequence& s) {
  const int64_t last = s.checkpoints.empty() ? 0 : s.checkpoints.back().position;
  const int64_t interval = s.request.checkpoint_interval;
  if (interval > 0 && s.position - last >= interval) KeepCheckpoint(s);
}

// Where it has taken tokens in.
void Generator::Impl::KeepCheckpointIfDue(Sequence& s) {
  const int64_t interval = s.request.checkpoint_interval;
  if (interval > 0 && s.position % interval == 0) KeepCheckpoint(s);
}

// The next `tokens` of a prompt, with room for the states that the tree wants of them.
ChunkPart Generator::Impl::PartOf(SequenceId id, int64_t tokens) {
  const Sequence& s = sequences.at(id);
  ChunkPart part{.id = id};
  absl::Cleanup drop = [&] { DropCaptures(part); };  // where memory runs out
  for (const int64_t position : s.wanted) {
    if (position <= s.position || position > s.position + tokens) continue;
    part.captured.reserve(part.captured.size() + 1);
    part.captures.reserve(part.captures.size() + 1);
    std::optional<SequenceState> captured = cache.Capture(s.state, position);
    if (!captured) break;
    part.captures.push_back({.position = position, .slot = captured->slot});
    part.captured.push_back(*std::move(captured));
  }
  std::move(drop).Cancel();
  return part;
}

void Generator::Impl::DropCaptures(ChunkPart& part) {
  for (SequenceState& captured : part.captured) cache.Drop(std::move(captured));
  part.captured.clear();
}

void Generator::Impl::KeepCaptures(ChunkPart& part, const Sequence& s) {
  for (size_t i = 0; i < part.captured.size(); ++i) {
    cache.Keep(s.request.cache_salt, s.Tokens(0, part.captures[i].position),
               std::move(part.captured[i]));
  }
  part.captured.clear();
}

// The prompts in turn, as many as there is room for in a pass. Where they all are, and few rows,
// those that decode step in the same pass: alone they would read the weights for themselves.
void Generator::Impl::BeginChunk() {
  stepping.clear();
  std::vector<ChunkPart> members;
  absl::Cleanup drop = [&] {
    for (ChunkPart& part : members) DropCaptures(part);
  };
  members.reserve(sequences.size());
  std::vector<PrefillPart> parts;
  int64_t rows = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {  // there may come more
    const SequenceId id = prompts[i];
    if (rows == prefill.max_rows()) break;
    Sequence& s = sequences.at(id);
    Start(s);
    if (s.position >= s.share_at) StopWaiting(s);  // the tree has what they wait for
    int64_t tokens = TokensToCheckpoint(s.position, prefill.TokensAt(s.position, s.prompt_end),
                                        s.request.checkpoint_interval);
    if (s.position < s.share_at) tokens = std::min(tokens, s.share_at - s.position);
    if (rows + tokens > prefill.max_rows()) continue;
    rows += tokens;
    cache.Slide(s.state, s.position);
    members.push_back(PartOf(id, tokens));
    parts.push_back({.tokens = s.Tokens(s.position, tokens),
                     .start = s.position,
                     .sequence = &s.state,
                     .captures = members.back().captures});
  }
  Steps steps;
  const bool together = members.size() == prompts.size() && rows <= prefill.stepping_rows();
  if (together && rows + decoding() <= prefill.max_rows()) steps = NextSteps();
  prefill.Begin(parts, steps.tokens);
  scored_part = 0;
  scored_rows = 0;
  chunk.swap(members);  // last: without memory there is no chunk in progress
  stepping.swap(steps.ids);
}

// A chunk in which sequences step is short, and is not interrupted: each is between two tokens
// whenever it is released or saved.
void Generator::Impl::FinishTogether(std::vector<TokenEvent>& events) {
  while (!prefill.done()) prefill.RunLayer(*state);
  while (SkipUnscored()) ScoreBlock();
  FinishChunk(events);
}

// A device works behind the host's back: without waiting, the clock would tell nothing. Small
// layers are not worth a wait each.
void Generator::Impl::Pace() {
  if (prefill.done() || prefill.rows() >= kPacedRows) b.Wait();
}

// Goes to the next row of the chunk that is to be scored; false when there is none. The last token
// of a prompt has no next one to be scored.
bool Generator::Impl::SkipUnscored() {
  for (; scored_part < chunk.size(); ++scored_part, scored_rows = 0) {
    const auto found = sequences.find(chunk[scored_part].id);
    if (found == sequences.end() || !found->second.request.score_prompt) continue;
    const Sequence& s = found->second;
    if (s.position < s.share_at) continue;  // see Share()
    const int64_t tokens = prefill.TokensOf(static_cast<int64_t>(scored_part));
    scored_rows = std::max(scored_rows, s.score_at - 1 - s.position);
    if (scored_rows < tokens && s.position + scored_rows + 1 < s.prompt_end) return true;
  }
  return false;
}

// Rows of one prompt, as many as there is room for logits. REQUIRES: SkipUnscored().
void Generator::Impl::ScoreBlock() {
  const auto part = static_cast<int64_t>(scored_part);
  Sequence& s = sequences.at(chunk[scored_part].id);
  const int64_t next = s.position + scored_rows + 1;
  const int64_t rows = std::min(
      {prompt_logits.view.rows, prefill.TokensOf(part) - scored_rows, s.prompt_end - next});
  const Tensor logits = prompt_logits.view.Rows(0, rows);
  const Tensor targets = next_tokens.view.Cols(0, rows);
  const auto likeliest = std::min<int64_t>(s.request.likeliest.value_or(0), scorer.MostLikeliest());
  prefill.RowLogits(prefill.FirstRow(part) + scored_rows, logits);
  b.UploadIndices(s.Tokens(next, rows), targets);
  scorer.Score(logits, targets, likeliest);
  for (TokenScores& scores : scorer.Download(rows, likeliest)) {
    s.prompt_scores.push_back(std::move(scores));
  }
  scored_rows += rows;
}

// The sequence, which `part` of the chunk is of, has the tokens that others wait for: they go on
// from here. On processors this is bit for bit where they would have come by themselves.
void Generator::Impl::Share(int64_t part, SequenceId id) {
  Sequence& s = sequences.at(id);
  std::vector<SequenceId> family = std::exchange(s.waiting, {});
  for (const SequenceId waiting : family) {
    Sequence& other = sequences.at(waiting);
    other.state = cache.Fork(s.state, s.position, other.cost.pages);
    other.position = other.cached = s.position;
    other.beginner = 0;
    prompts.push_back(waiting);
  }
  family.push_back(id);
  ScoreNext(part, family);
}

// Scores the token of each behind the last row of `part`, where the first one to be scored is that.
void Generator::Impl::ScoreNext(int64_t part, std::span<const SequenceId> family) {
  const Tensor logits = prompt_logits.view.Rows(0, 1);
  const Tensor target = next_tokens.view.Cols(0, 1);
  bool computed = false;
  for (const SequenceId id : family) {
    Sequence& s = sequences.at(id);
    if (!s.request.score_prompt || s.score_at != s.position) continue;
    if (!computed) prefill.RowLogits(prefill.FirstRow(part) + prefill.TokensOf(part) - 1, logits);
    computed = true;
    const auto likeliest =
        std::min<int64_t>(s.request.likeliest.value_or(0), scorer.MostLikeliest());
    b.UploadIndices(s.Tokens(s.position, 1), target);
    scorer.Score(logits, target, likeliest);
    s.prompt_scores = scorer.Download(1, likeliest);
  }
}

// Those that wait for `s` begin by themselves.
void Generator::Impl::StopWaiting(Sequence& s) {
  for (const SequenceId id : std::exchange(s.waiting, {})) {
    sequences.at(id).beginner = 0;
    prompts.push_back(id);
  }
}

void Generator::Impl::FinishChunk(std::vector<TokenEvent>& events) {
  std::vector<std::vector<SequenceId>> families(chunk.size());  // that have their prompt now
  bool finished = !stepping.empty();
  for (size_t i = 0; i < chunk.size(); ++i) {
    const SequenceId id = chunk[i].id;
    const auto found = sequences.find(id);
    if (found == sequences.end()) continue;  // released meanwhile
    Sequence& s = found->second;
    KeepCaptures(chunk[i], s);
    s.position += prefill.TokensOf(static_cast<int64_t>(i));
    KeepCheckpointIfDue(s);
    prompts.erase(std::find(prompts.begin(), prompts.end(), id));
    if (!s.prompt_done()) {
      prompts.push_back(id);
      if (s.position == s.share_at) Share(static_cast<int64_t>(i), id);
      continue;
    }
    families[i] = PartFollowers(id);
    finished = true;
  }
  for (const SequenceId id : stepping) {
    StepDone(sequences.at(id));
    families.push_back({id});
  }
  if (finished) SampleLast(families, events);
  chunk.clear();
}

void Generator::Impl::StepDone(Sequence& s) {
  ++s.position;
  KeepCheckpointIfDue(s);
}

// The prompt of a leader is done: the leader, and those that followed it, each with its own state.
std::vector<SequenceId> Generator::Impl::PartFollowers(SequenceId id) {
  Sequence& s = sequences.at(id);
  s.decoding = true;
  s.request.start.reset();
  std::vector<SequenceId> family = std::exchange(s.followers, {});
  for (const SequenceId follower : family) {
    Sequence& f = sequences.at(follower);
    f.state = cache.Fork(s.state, s.position, f.cost.pages);
    f.position = s.position;
    f.cached = std::ssize(f.request.prompt);
    f.checkpoints = s.checkpoints;
    if (f.request.score_prompt) f.prompt_scores = s.prompt_scores;
    f.decoding = true;
    f.leader = 0;
    f.request.start.reset();
  }
  LimitCheckpoints(most_checkpoints);
  family.push_back(id);
  return family;
}

// families[i]: whose next token is chosen from row i of the chunk's last ones, one after the other.
void Generator::Impl::SampleLast(const std::vector<std::vector<SequenceId>>& families,
                                 std::vector<TokenEvent>& events) {
  const Tensor logits = prompt_logits.view.Rows(0, std::ssize(families));
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
  events.push_back(std::move(event));
}

// Whether a part of its prompt has been taken in, and none is at the moment: a chunk changes states
// layer by layer.
bool Generator::Impl::BetweenParts(SequenceId id) const {
  const Sequence& s = sequences.at(id);
  const int64_t before = s.request.start ? s.request.start->position : 0;
  return s.state.slot >= 0 && s.position > before &&
         std::none_of(chunk.begin(), chunk.end(),
                      [&](const ChunkPart& part) { return part.id == id; });
}

// Takes a sequence out of the queue, and its slot and pages out of the chunk in progress.
void Generator::Impl::Drop(SequenceId id) {
  const auto prompt = std::find(prompts.begin(), prompts.end(), id);
  if (prompt != prompts.end()) prompts.erase(prompt);
  const auto part = std::find_if(chunk.begin(), chunk.end(),
                                 [&](const ChunkPart& other) { return other.id == id; });
  if (part == chunk.end()) return;
  prefill.Drop(part - chunk.begin());
  DropCaptures(*part);
  part->id = kReleased;
  const bool all = std::all_of(chunk.begin(), chunk.end(),
                               [](const ChunkPart& other) { return other.id == kReleased; });
  if (all) chunk.clear();
}

// Which follower can go on in its leader's place: one that is scored, if any is.
SequenceId Generator::Impl::HeirOf(const Sequence& s) const {
  const auto scored = std::find_if(s.followers.begin(), s.followers.end(), [&](SequenceId id) {
    return sequences.at(id).request.score_prompt;
  });
  return scored != s.followers.end() ? *scored : s.followers.front();
}

// A leader leaves: `heir` takes its place, its state and its other followers.
void Generator::Impl::HandOver(SequenceId id, SequenceId heir) {
  Sequence& from = sequences.at(id);
  Sequence& to = sequences.at(heir);
  if (from.state.slot >= 0) {
    cache.Resize(from.state, to.cost.pages);
    to.state = std::exchange(from.state, {});
  }
  to.position = from.position;
  to.cached = from.cached;
  to.wanted = std::move(from.wanted);
  to.checkpoints = std::move(from.checkpoints);
  if (to.request.score_prompt) to.prompt_scores = std::move(from.prompt_scores);
  to.leader = 0;
  to.beginner = 0;
  to.share_at = from.share_at;
  to.waiting = std::exchange(from.waiting, {});
  std::erase(to.waiting, heir);
  for (const SequenceId waiting : to.waiting) sequences.at(waiting).beginner = heir;
  to.followers = std::exchange(from.followers, {});
  std::erase(to.followers, heir);
  for (const SequenceId follower : to.followers) sequences.at(follower).leader = heir;
  std::replace(prompts.begin(), prompts.end(), id, heir);
  for (ChunkPart& part : chunk) {
    if (part.id == id) part.id = heir;
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
  if (options.prefix_slots < 0 || options.prefix_interval < 1) {
    return InvalidArgument("prefix_slots is " + std::to_string(options.prefix_slots) +
                           " and prefix_interval " + std::to_string(options.prefix_interval) +
                           ", expected at least 0 and 1");
  }
  HIPPODROME_RETURN_IF_ERROR(CheckWindow(options.attention_window, model.config()));
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
                              kPageTokens, options.attention_window);
  return std::unique_ptr<Generator>(
      new Generator(std::make_unique<Impl>(backend, model, options, std::move(state))));
}

Footprint Generator::Cost(int64_t tokens_before, int64_t max_tokens) const {
  return impl_->limits.Cost(tokens_before, max_tokens);
}

Footprint Generator::capacity() const { return impl_->limits.capacity(); }

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
  const Impl::Steps steps = impl_->NextSteps();
  if (steps.ids.empty()) return;
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
