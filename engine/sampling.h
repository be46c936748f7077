// Sampling parameters as clients give them. engine/parameter_ranges.h has their ranges.
#ifndef HIPPODROME_ENGINE_SAMPLING_H_
#define HIPPODROME_ENGINE_SAMPLING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace hippodrome {

// What SamplingParameters says of each; not narrowed and not checked.
struct SamplingFields {
  float temperature = 1;
  int64_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float typical_p = 1;
  uint64_t seed = 0;
};

struct TokenBias {
  int32_t token = 0;
  float bias = 0;  // added to the token's logit
};

// What else changes logits before a token is chosen. c_j is how often token j is among the new
// tokens:  l_j' = r(l_j) + bias_j - frequency_penalty c_j - presence_penalty [c_j > 0],
// r(l) = l > 0 ? l / repetition_penalty : l * repetition_penalty for the tokens of the prompt and
// the new ones, else l.
struct LogitChanges {
  std::vector<TokenBias> bias;  // of different tokens of the vocabulary
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;

  bool penalises() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  bool any() const { return penalises() || !bias.empty(); }
};

// The likeliest tokens whose log probabilities can be asked for.
inline constexpr int32_t kMaxLikeliest = 20;

// Errors: the FieldError of the first field that is out of its range, as is what is not a number.
absl::StatusOr<SamplingParameters> ToSamplingParameters(const SamplingFields& fields);

// Whether all is in its range; the same errors.
absl::Status CheckLogitChanges(const LogitChanges& changes, int64_t vocab_size);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_SAMPLING_H_
