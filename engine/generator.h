// Continuous batching over one model: admit, prefill, step, release.
#ifndef HIPPODROME_ENGINE_GENERATOR_H_
#define HIPPODROME_ENGINE_GENERATOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/passes/token_scores.h"
#include "engine/sampling.h"
#include "kernels/backend.h"

namespace hippodrome {

class HybridH3;
struct LayerStates;
struct SequenceState;

struct GenerationRequest {
  std::vector<int32_t> prompt;  // 1 or more ids in [0, vocab_size)
  int64_t max_tokens = 16;      // >= 1
  SamplingParameters sampling;  // of ToSamplingParameters(): in their ranges
  LogitChanges changes = {};
  bool ignore_eos = false;  // go on after the end-of-text token
  // New tokens come with their log probabilities and those of so many likeliest ones, [0,
  // kMaxLikeliest]; nothing: without. They are of the model's own logits: neither `changes` nor
  // `sampling` is in them.
  std::optional<int32_t> likeliest = {};
  bool score_prompt = false;  // the tokens of the prompt come with theirs
};

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
  std::vector<TokenScores> prompt_scores =
      {};  // with the first token, where asked for: one for each
           // token of the prompt; that of the first is empty
};

struct GeneratorOptions {
  int64_t max_sequences = 64;  // state slots
  // Bytes of key/value pages, rounded down to whole pages; unused by models without attention.
  int64_t key_value_bytes = int64_t{1} << 30;
};

// What a sequence reserves from admission to release, or what is there in all.
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
  // kInvalidArgument when the options leave no room for a single sequence, kFailedPrecondition for
  // a model that takes whole sequences.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(Backend& backend, const HybridH3& model,
                                                           const GeneratorOptions& options);
  ~Generator();

  // Bytes and pages that a request of this size reserves; saturates rather than overflows.
  Footprint Cost(int64_t prompt_tokens, int64_t max_tokens) const;
  Footprint capacity() const;
  Footprint used() const;

  // The one check of a request: OK if it can run on an empty generator. Otherwise kInvalidArgument
  // (ids out of range, empty prompt, max_tokens) or kOutOfRange (never fits: says needed and
  // available).
  absl::Status Validate(const GenerationRequest& request) const;

  // Reserves everything that `request` can need and queues its prompt. REQUIRES: Validate(request)
  // was OK. Errors: kResourceExhausted when it does not fit now.
  absl::StatusOr<SequenceId> Admit(GenerationRequest request);

  // True while an admitted prompt is not yet finished.
  bool prefilling() const;
  // Sequences that the next Step() advances.
  int64_t decoding() const;

  // Tokens that are left to a sequence at most: of its prompt to take in, and new ones to make.
  // REQUIRES: it was admitted and not released.
  int64_t Remaining(SequenceId sequence) const;

  // Works on admitted prompts, one chunk each in turn, until all are done or `until` has passed,
  // which is looked at between layers and between blocks of rows that are scored; does at least one
  // of these. A finished prompt yields its
  // first token in `events`.
  void Prefill(Clock::time_point until, std::vector<TokenEvent>& events);

  // Appends one token for each sequence that has its prompt done and has not finished.
  void Step(std::vector<TokenEvent>& events);

  // Gives back all that the sequence reserved, at any time, also mid-prompt. Unknown ids are
  // ignored.
  void Release(SequenceId sequence);

  // As DecodeState::WatchFreed().
  void WatchFreed(std::function<void(const LayerStates&, const SequenceState&)> on_freed);

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATOR_H_
