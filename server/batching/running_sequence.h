// One admitted request on the loop thread: from token events to updates for its client.
#ifndef HIPPODROME_SERVER_BATCHING_RUNNING_SEQUENCE_H_
#define HIPPODROME_SERVER_BATCHING_RUNNING_SEQUENCE_H_

#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "engine/generator.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/utf8_stream.h"
#include "server/batching/caller.h"
#include "server/batching/stop_matcher.h"
#include "server/batching/token_stream.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

// Bytes of tokens -> whole UTF-8 characters -> text before the first stop string. Not thread-safe.
class TextDecoder {
 public:
  // `tokenizer` may be null, then all text is empty; otherwise it must outlive the decoder.
  // `pending`: what the text before this one left, as pending() gave it.
  TextDecoder(const BpeTokenizer* tokenizer, std::vector<std::string> stops,
              const std::string& pending = "");

  // Adds one token; returns the text that is now certain.
  std::string Append(int32_t token);
  // The tokens are complete: the rest of the text. May find a stop string.
  std::string Finish();
  // The same, but an incomplete character stays behind, in pending().
  std::string FinishCharacters();
  // Bytes of tokens that were not given out, and may be yet.
  std::string pending() const;
  // True once a stop string was found: the text is complete.
  bool stopped() const { return stops_.stopped(); }

 private:
  const BpeTokenizer* tokenizer_;
  Utf8Stream characters_;
  StopMatcher stops_;
  std::string ready_;  // of an earlier text, and certain
};

// Tells what became of a state.
using StateKept = std::function<void(std::shared_ptr<const v1::State> state)>;

// What a client asks for, validated.
struct GenerationCall {
  GenerationRequest request;
  std::vector<std::string> stop;  // none of them empty
  Caller caller;
  bool prompt_only = false;  // the token that the engine makes after the prompt is dropped
  // Takes the state behind the last token, and calls `kept` once, on any thread. Must be cheap.
  // Null: nobody wants it.
  std::function<void(SavedState state, StateKept kept)> keep_state;
  // The same, for whoever goes on elsewhere. False, with nothing done, while there is no room for
  // the state. Null: it cannot go on elsewhere.
  std::function<bool(SavedState state, StateKept kept)> migrate;

  // Tokens that are in the state that it goes on from.
  int64_t held_tokens() const { return request.start == nullptr ? 0 : request.start->position; }

  // Those whose log probabilities are in the answer, at most.
  int64_t scored_tokens() const {
    if (!request.likeliest) return 0;
    const int64_t prompt =
        request.score_prompt ? std::ssize(request.prompt) - request.score_from : 0;
    return prompt + request.max_tokens;
  }
};

// Not thread-safe.
class RunningSequence {
 public:
  using Clock = std::chrono::steady_clock;

  // What the first new token sees.
  struct Context {
    int64_t tokens = 0;             // TokensBefore()
    int64_t held = 0;               // of these, those of the state that it goes on from
    std::string pending_text = {};  // PendingText() of the request
  };

  // `call` without its request, which is the engine's.
  RunningSequence(const BpeTokenizer* tokenizer, GenerationCall call, const Context& context,
                  Clock::time_point submitted, std::shared_ptr<TokenStream> stream);

  // Takes a new token and tells the client. False when that was the last one, because the sequence
  // has finished, met a stop string, or its client reads too slowly.
  bool OnToken(TokenEvent event, Clock::time_point now, ModelMetrics& metrics);
  // After the last token: whether the client is still to be told of it, with KeepState().
  bool wants_state() const { return last_.has_value(); }
  // Hands over the state, and tells the client the last token once that is kept; `delivered` lives
  // until then. REQUIRES: wants_state().
  void KeepState(SavedState state, std::shared_ptr<const void> delivered);

  bool may_migrate() const { return migrate_ != nullptr; }
  // Hands over the state, here without text, and tells the client once that is kept. False, with
  // nothing done, while there is no room for it. REQUIRES: may_migrate(), no last token was taken.
  bool Migrate(SavedState state, const std::shared_ptr<const void>& delivered);

  // Before the first token: how much of what is behind the state was not taken in again.
  void set_cached(int64_t tokens) { cached_ = tokens; }

  TokenStream& stream() { return *stream_; }
  Phase phase() const { return completion_tokens_ == 0 ? Phase::kPrefill : Phase::kDecode; }

 private:
  StreamUpdate Update(TokenEvent event);
  void Measure(Clock::time_point now, ModelMetrics& metrics);

  TextDecoder text_;
  const Caller caller_;
  const bool prompt_only_;
  const std::function<void(SavedState state, StateKept kept)> keep_state_;
  const std::function<bool(SavedState state, StateKept kept)> migrate_;
  const Context context_;
  int64_t cached_ = 0;
  const Clock::time_point submitted_;
  const Clock::time_point admitted_ = Clock::now();
  const std::shared_ptr<TokenStream> stream_;
  int64_t completion_tokens_ = 0;
  std::optional<StreamUpdate> last_;  // that waits for the state
  Clock::time_point first_token_, last_token_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_RUNNING_SEQUENCE_H_
