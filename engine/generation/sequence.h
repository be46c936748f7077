// One admitted request on its way.
#ifndef HIPPODROME_ENGINE_GENERATION_SEQUENCE_H_
#define HIPPODROME_ENGINE_GENERATION_SEQUENCE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "engine/generation/adjusted_tokens.h"
#include "engine/generation/speculation.h"
#include "engine/generator.h"
#include "engine/passes/token_chooser.h"
#include "engine/state/decode_state.h"

namespace hippodrome {

// Its prompt is what has to be taken in before the first new token: the last token of the state to
// start from, if any, and the request's prompt; but nothing where that is empty, since then the
// last token is stepped.
struct Sequence {
  Sequence(GenerationRequest request, const Footprint& cost);

  int64_t length() const { return first + std::ssize(tokens); }
  bool prompt_done() const { return position >= prompt_end; }
  // It has a token that is not in its state, which the next step takes in.
  bool has_last_token() const { return (generated > 0 || decoding) && length() == position + 1; }
  // Tokens [from, from + count), by position.
  std::span<const int32_t> Tokens(int64_t from, int64_t count) const {
    return std::span(tokens).subspan(from - first, count);
  }
  // Whether `other`, as good as new, need not take its prompt in beside this one.
  bool CanLead(const GenerationRequest& other) const;
  // The same for the tokens before other's share_at.
  bool CanBegin(const Sequence& other) const;
  void Append(int32_t token);
  HowToChoose how() const;

  GenerationRequest request;  // without start once the prompt is done
  Footprint cost;
  std::vector<int32_t> tokens;  // from position `first` on
  int64_t first = 0;            // > 0: the tokens before are not known
  bool lossy = false;           // it began with a state that was rounded
  int64_t prompt_end = 0;       // position after the prompt
  int64_t prompt_tokens = 0;    // before the first that penalties count as new
  int64_t score_at = 0;         // the first position whose token is scored
  int64_t share_at = 0;         // where those part that wait for its shared tokens; 0: nobody can
  SequenceState state = {};     // without a slot until the prompt's turn comes
  int64_t position = 0;         // tokens that are in the state
  int64_t generated = 0;
  int64_t cached = 0;                  // tokens of the prompt that others took in
  bool decoding = false;               // prompt done, not finished
  std::deque<TokenChoice> ready = {};  // next tokens; the state has all but the last one
  DraftLength draft_length = {};
  std::optional<AdjustedTokens> adjusted = {};  // where its request changes logits
  std::vector<TokenScores> prompt_scores = {};  // so far
  std::vector<int64_t> wanted = {};             // positions at which the tree wants its state
  bool exact = true;                            // as SavedState::exact
  std::vector<Checkpoint> checkpoints = {};     // ascending, in [1, position]

  SequenceId leader = 0;                   // whose state it gets where the prompt ends; 0: its own
  std::vector<SequenceId> followers = {};  // whose leader it is
  SequenceId beginner = 0;                 // whose state at share_at it begins with; 0: nobody's
  std::vector<SequenceId> waiting = {};    // whose beginner it is
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_SEQUENCE_H_
