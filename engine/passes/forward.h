// Logits and likelihoods of every position of given sequences: what verification and evaluation
// need.
#ifndef HIPPODROME_ENGINE_PASSES_FORWARD_H_
#define HIPPODROME_ENGINE_PASSES_FORWARD_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/token_scores.h"

namespace hippodrome {

// How a sequence goes through the model; all ways give the same logits within rounding, that of
// states included.
struct ForwardMode {
  bool step = false;  // token by token through the recurrence
  // Tokens per prefill chunk, cut from the start; 0: the serving grid.
  int64_t chunk = 0;
  DType h3_state = DType::kF32;  // as that of GeneratorOptions
};

// Receives logits [rows, padded V] (host f32, row-major, valid during the call) of the positions
// first_position .. first_position + rows - 1, in order.
using LogitsSink = std::function<void(int64_t first_position, std::span<const float> logits)>;

// Runs `ids` from a zero state. Errors: kInvalidArgument for an empty sequence or ids out of
// [0, padded V); kOutOfRange beyond the position table; those of HybridH3::CheckH3State().
absl::Status Forward(Backend& backend, const HybridH3& model, std::span<const int32_t> ids,
                     const ForwardMode& mode, const LogitsSink& sink);

// The log probability of each of `ids` after those before it, with those of the `likeliest` tokens
// there, by the operation that serving takes: the bits are those of GenerationRequest::score_prompt
// for any batch. The first token has none. Errors: as above, with ids in [0, V). REQUIRES:
// likeliest in [0, kMaxLikeliest].
absl::StatusOr<std::vector<TokenScores>> ForwardScores(Backend& backend, const HybridH3& model,
                                                       std::span<const int32_t> ids,
                                                       int64_t likeliest);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_FORWARD_H_
