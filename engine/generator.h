// Continuous batching over one model: admit, prefill, step, release.
#ifndef HIPPODROME_ENGINE_GENERATOR_H_
#define HIPPODROME_ENGINE_GENERATOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/passes/token_scores.h"
#include "engine/sampling.h"
#include "engine/state/prefix_cache.h"
#include "engine/state/saved_state.h"
#include "kernels/backend.h"

namespace hippodrome {

class HybridH3;

struct GenerationRequest {
  // Ids in [0, vocab_size), 1 or more; none will do where `start` has a last token.
  std::vector<int32_t> prompt;
  int64_t max_tokens = 16;      // >= 1
  SamplingParameters sampling;  // of ToSamplingParameters(): in their ranges
  LogitChanges changes = {};
  bool ignore_eos = false;  // go on after the end-of-text token
  // New tokens come with their log probabilities and those of so many likeliest ones, [0,
  // kMaxLikeliest]; nothing: without. They are of the model's own logits: neither `changes` nor
  // `sampling` is in them.
  std::optional<int32_t> likeliest = {};
  bool score_prompt = false;  // the tokens of the prompt come with theirs
  int64_t score_from = 0;     // but for so many at its beginning, [0, prompt size)
  // Other requests begin with the same so many tokens, and come about now: these are taken in once
  // for those that wait until then. [0, score_from], 0: of no others. It decides about time alone,
  // as cache_prompt does. Not with `start`.
  int64_t shared_tokens = 0;

  // Goes on from here: the prompt is what is new, and nothing in the state is processed again. The
  // last token, which is not in the state yet, is taken in first. Positions of the sampler go on.
  // With an empty prompt the sequence is as if it had never stopped, penalties included; on
  // processors, for states of the same arithmetic, bit for bit. Otherwise it is as if all tokens so
  // far were its prompt.
  std::shared_ptr<const SavedState> start = {};

  // Whether the prompt may begin with a state of the tree of prefixes, and leave some there.
  // Prompts that are to be scored take one that ends before the first scored token; those that go
  // on from `start` take none, and leave none either.
  // It decides about time alone, on processors: no bit of an answer depends on it.
  bool cache_prompt = true;
  std::string cache_salt = {};  // requests share with those of the same salt alone
  // Tokens of the prompt after which the tree should hold a state, rounded down to a multiple of
  // kCaptureTokens; each in [1, prompt size], kMaxCacheMarks at most.
  std::vector<int64_t> cache_marks = {};

  // Tokens from one checkpoint of the state to the next, a multiple of kCaptureTokens; 0: none but
  // those that `start` had, which stay. The sequence has one behind each multiple of it that it
  // takes in, and where it begins with tokens that others took in, be it `start` or the tree,
  // unless there is one less than an interval before. There are none before kTransformTokens of a
  // prompt of as many or more. Of more than kMaxCheckpoints, or than there is memory for, the
  // oldest go.
  int64_t checkpoint_interval = 0;

  // Whether a state that is saved has the tokens that are in it. They are all that grows with a
  // sequence that has no rows of attention.
  bool keep_tokens = true;
};
inline constexpr int64_t kMaxCacheMarks = 64;

// Tokens before the first new one: those of the state to start from with its last one, and the
// prompt. Saturates rather than overflows.
int64_t TokensBefore(const GenerationRequest& request);

// What the text of its new tokens begins with: SavedState::pending_text where nothing comes
// between.
std::string PendingText(const GenerationRequest& request);

// kFailed: the model computed logits that are not finite. Its event has no token.
enum class FinishReason : uint8_t { kNone, kLength, kEndOfText, kFailed };

// Names a sequence from Admit() until Release().
using SequenceId = int64_t;

// One new token. The end-of-text token is reported like any other, with finish == kEndOfText.
struct TokenEvent {
  SequenceId sequence = 0;
  int32_t token = 0;
  FinishReason finish = FinishReason::kNone;
  std::optional<TokenScores> scores = {};  // where asked for
  // With the first token, where asked for: one for each token of the prompt from score_from on.
  // That of the very first is empty, unless a last token came before it.
  std::vector<TokenScores> prompt_scores = {};
};

struct GeneratorOptions {
  int64_t max_sequences = 64;  // state slots
  // Bytes of key/value pages, rounded down to whole pages; unused by models without attention.
  int64_t key_value_bytes = int64_t{1} << 30;
  // Tokens before a new one that attention sees at least, 64 or more; what lies before is dropped.
  // An approximation, with which a sequence may go on without end. 0: it sees all.
  int64_t attention_window = 0;
  // As that of Backend::NewH3State(): kF32, or kBF16, which takes less memory and rounds.
  DType h3_state = DType::kF32;
  int64_t prefix_slots = 0;       // of the tree of prefixes, beside those; 0: there is none
  int64_t prefix_interval = 512;  // tokens of a prompt between two states of the tree; >= 1
  // Of host memory for the checkpoints of all sequences; those that they share count for each.
  int64_t checkpoint_bytes = int64_t{256} << 20;
  // Speculative decoding: tokens that the text so far suggests are tried several in a step; or
  // those of `draft`, a smaller model with the same tokens, which must outlive the generator. It
  // decides about time alone: the tokens are those that the model chooses.
  bool speculate = false;
  const HybridH3* draft = nullptr;
};

// Of speculation, since the generator was made.
struct DraftCounts {
  int64_t drafted = 0;   // tokens that were tried
  int64_t accepted = 0;  // of those, the ones that the model chose itself
};

// What a sequence reserves from admission to release, or what is there in all. Sequences that share
// pages reserve them each: what one holds does not depend on others, so that when it ends, all that
// it reserved is free. What is shared is room for the tree of prefixes, and never more sequences.
// What the tree holds counts as free.
struct Footprint {
  int64_t slots = 0;
  int64_t pages = 0;
  int64_t bytes = 0;  // slots * state bytes + pages * page bytes
};

// Not thread-safe: one thread owns it, with the backend; but Cost(), capacity() and Validate() read
// constants alone and may be called on any thread. A sequence's tokens do not depend on what
// runs beside it, on the order of arrival, or on how its prefill is interrupted.
class Generator {
 public:
  using Clock = std::chrono::steady_clock;

  // `backend` and `model` must outlive the generator. Allocates all state. Errors:
  // kInvalidArgument when the options leave no room for a single sequence, or want drafts where
  // states cannot go back (DecodeState::rewind_block()), or by a model with other tokens; those of
  // HybridH3::CheckH3State().
  static absl::StatusOr<std::unique_ptr<Generator>> Create(Backend& backend, const HybridH3& model,
                                                           const GeneratorOptions& options);
  ~Generator();

  // What a request reserves with so many tokens before the first new one (TokensBefore()), whether
  // it begins with a state of the tree or not; saturates rather than overflows.
  Footprint Cost(int64_t tokens_before, int64_t max_tokens) const;
  Footprint capacity() const;
  Footprint used() const;
  // DecodeState::bytes_per_step().
  int64_t step_bytes() const;

  // The one check of a request: OK if it can run on an empty generator. Otherwise kInvalidArgument
  // (ids out of range, empty prompt, max_tokens, marks, a state that does not have the model's
  // shapes, or lacks the tokens that penalties need), kFailedPrecondition (a state of another
  // model) or kOutOfRange (never fits: says needed and available).
  absl::Status Validate(const GenerationRequest& request) const;

  // Reserves everything that `request` can need and queues its prompt. Where the same prompt of the
  // same salt (and start) is being taken in already, it is not taken in twice: the sequences part
  // where it ends; or where their shared tokens do. REQUIRES: Validate(request) was OK. Errors:
  // kResourceExhausted when it does not fit now.
  absl::StatusOr<SequenceId> Admit(GenerationRequest request);

  // True while an admitted prompt is not yet finished.
  bool prefilling() const;
  // Sequences that have their prompt done and have not finished.
  int64_t decoding() const;
  // Of these, how many have a token already that came true in a draft: where there are any, the
  // next Step() gives one to each of them, and computes nothing.
  int64_t ready() const;

  // Tokens that are left to a sequence at most: of its prompt to take in, and new ones to make.
  // REQUIRES: it was admitted and not released.
  int64_t Remaining(SequenceId sequence) const;

  // Works on admitted prompts, a chunk each in turn, as many together as a pass takes, until all
  // are done or `until` has passed, which is looked at between layers and between blocks of rows
  // that are scored; does at least one of these. A finished prompt yields its first token in
  // `events`. Where no more than kSteppingRows tokens of prompts are left for the next pass, the
  // sequences that decode, and are not ready(), step in it as by Step(); the call ends with it.
  void Prefill(Clock::time_point until, std::vector<TokenEvent>& events);
  // How many stepped so in the last pass that Prefill() began. Where it threw, they have failed as
  // the prompts have.
  int64_t stepped() const;

  // Appends one token for each sequence that has its prompt done and has not finished, or for those
  // that are ready().
  void Step(std::vector<TokenEvent>& events);
  DraftCounts drafts() const;

  // Gives back all that the sequence reserved, at any time, also mid-prompt. Unknown ids are
  // ignored.
  void Release(SequenceId sequence);

  // What a sequence is at this moment: all tokens but the last one, which is beside them; of a
  // prompt that is half taken in, the tokens that are, and no last one. Going on from there with
  // the other tokens of the prompt changes no bit. `tokens` is empty where it started from a state
  // without, and may be where they are not to be kept. REQUIRES: admitted and not released. Errors:
  // kFailedPrecondition before any of its prompt was taken in, while a part of it is, and after
  // kFailed.
  absl::StatusOr<SavedState> Save(SequenceId sequence) const;
  // SavedState::arithmetic of what it computes.
  std::string arithmetic() const;
  // What states that requests start from must look like.
  const StateLayout& state_layout() const;

  // Tokens of the prompt that were not processed again: a state of the tree had them, or another
  // sequence took them in. Stands with the first token. REQUIRES: admitted and not released.
  int64_t Cached(SequenceId sequence) const;
  // What the tree of prefixes did so far.
  PrefixCounts prefixes() const;
  // Drops all that it holds.
  void ClearPrefixes();
  // What is not free for anything: of sequences, shared pages once, and of the tree.
  Footprint held() const;

  // As DecodeState::WatchFreed().
  void WatchFreed(std::function<void(const LayerStates&, const SequenceState&)> on_freed);

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATOR_H_
