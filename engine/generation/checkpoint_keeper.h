// The checkpoints of all sequences that run, within one budget.
#ifndef HIPPODROME_ENGINE_GENERATION_CHECKPOINT_KEEPER_H_
#define HIPPODROME_ENGINE_GENERATION_CHECKPOINT_KEEPER_H_

#include <cstdint>
#include <map>

#include "engine/generation/sequence.h"
#include "engine/state/decode_state.h"
#include "engine/state/saved_state.h"

namespace hippodrome {

// Adds to Sequence::checkpoints, as GenerationRequest::checkpoint_interval says. When there are
// more than the budget has room for, the oldest go of the sequence that has most. Not thread-safe.
class CheckpointKeeper {
 public:
  // `bytes`: of all checkpoints. All three must outlive this.
  CheckpointKeeper(const DecodeState& state, const StateLayout& layout, int64_t bytes,
                   std::map<SequenceId, Sequence>& sequences);

  // One where `s` begins with tokens that others took in, unless one less than an interval before.
  void KeepFirst(Sequence& s);
  // One of `s` as it is now, where it has taken tokens in and one is due.
  void KeepIfDue(Sequence& s);
  // After sequences got checkpoints of others.
  void Limit() { Limit(most_); }

 private:
  void Keep(Sequence& s);
  void Limit(int64_t most);

  const DecodeState& state_;
  const StateLayout& layout_;
  const int64_t most_;
  std::map<SequenceId, Sequence>& sequences_;
};

// Of `tokens` from `position` of a prompt, how many go before the next checkpoint.
int64_t TokensToCheckpoint(int64_t position, int64_t tokens, int64_t interval);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_CHECKPOINT_KEEPER_H_
