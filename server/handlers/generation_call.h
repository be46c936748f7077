// A request for text, checked and tokenised: what the batcher takes.
#ifndef HIPPODROME_SERVER_HANDLERS_GENERATION_CALL_H_
#define HIPPODROME_SERVER_HANDLERS_GENERATION_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/state/saved_state.h"
#include "hippodrome/v1/generation.pb.h"
#include "server/batching/running_sequence.h"
#include "server/handlers/served_model.h"
#include "server/options.h"

namespace hippodrome {

// The seed of one of several answers to a request, so that they differ: choice 0 has `seed` itself;
// choice i has the i-th output, from 1, of SplitMix64 (Steele, Lea, Flood 2014) that starts at
// `seed`, which differs from those of all other i.
uint64_t ChoiceSeed(uint64_t seed, int64_t choice);

// Under which the prefix tree keeps what a caller's prompts begin with, where his request has
// `salt`: it is shared within an API key alone.
std::string CacheSalt(const Caller& caller, const std::string& salt);

// All that is asked for, against its range in generation.proto and `limits`, but for what
// GenerationBatcher::Submit() checks. Without a seed, one is drawn. Errors: those of
// generation.proto.
absl::StatusOr<GenerationCall> ToCall(const v1::GenerateRequest& request,
                                      const ServedDecoder& model, const RequestLimits& limits,
                                      const Caller& caller);

// What a request goes on from.
struct StartingPoint {
  std::shared_ptr<const SavedState> state;  // null: from nothing
  std::vector<int32_t> tokens;              // that are taken in again before the prompt
  uint64_t seed = 0;                        // where the request has none
};
// `state` as it was after `position` tokens: see Rewind(), whose errors it has.
absl::StatusOr<StartingPoint> GoBack(std::shared_ptr<const SavedState> state, int64_t position);

// Makes `call`, of `request`, go on from `start`. Errors: kInvalidArgument where they do not go
// together.
absl::Status GoOnFrom(const StartingPoint& start, const v1::GenerateRequest& request,
                      GenerationCall& call);

// The log probabilities in the answer to `call`.
int64_t Scores(const GenerationCall& call);
// kOutOfRange if those of all that a client calls for at once are too many.
absl::Status CheckScores(int64_t scores, const RequestLimits& limits);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_GENERATION_CALL_H_
