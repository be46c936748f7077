// The numbers that a request for text may set: the one place of their ranges and defaults. Checks
// of all transports, the parsers of bodies and the OpenAPI document read it; tests compare the
// comments of generation.proto with it.
#ifndef HIPPODROME_ENGINE_PARAMETER_RANGES_H_
#define HIPPODROME_ENGINE_PARAMETER_RANGES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "engine/sampling.h"

namespace hippodrome {

struct ParameterRange {
  const char* name;  // in messages, bodies and errors
  double least;
  double most;
  std::optional<double> usual;  // what a request without it has, where that is a number
  const char* about = "";
  bool whole = false;
  bool without_least = false;  // `least` itself is not in it
};

inline constexpr ParameterRange kTemperatureRange = {
    "temperature", 0, 100, 1, "divides the logits; 0 chooses the likeliest token"};
inline constexpr ParameterRange kTopKRange = {
    .name = "top_k",
    .least = 0,
    .most = 1 << 30,
    .usual = 0,
    .about = "only so many of the likeliest tokens; 0: off",
    .whole = true};
inline constexpr ParameterRange kTopPRange = {
    .name = "top_p",
    .least = 0,
    .most = 1,
    .usual = 1,
    .about = "only the likeliest tokens that have this probability together; 1: off",
    .without_least = true};
inline constexpr ParameterRange kMinPRange = {
    "min_p", 0, 1, 0, "only tokens with this part of the likeliest one's probability; 0: off"};
inline constexpr ParameterRange kTypicalPRange = {
    .name = "typical_p",
    .least = 0,
    .most = 1,
    .usual = 1,
    .about = "only tokens about as surprising as expected, of this probability together; 1: off",
    .without_least = true};
inline constexpr ParameterRange kRepetitionPenaltyRange = {
    "repetition_penalty", 0.01, 100, 1,
    "divides the positive logits of tokens that are there already, multiplies the others; 1: off"};
inline constexpr ParameterRange kPresencePenaltyRange = {
    "presence_penalty", -2, 2, 0, "taken from the logits of tokens that the answer has"};
inline constexpr ParameterRange kFrequencyPenaltyRange = {
    "frequency_penalty", -2, 2, 0, "the same for each time that the answer has the token"};
// Of each of its entries.
inline constexpr ParameterRange kLogitBiasRange = {"logit_bias", -100, 100, std::nullopt};
inline constexpr ParameterRange kMaxTokensRange = {.name = "max_tokens",
                                                   .least = 0,
                                                   .most = 1 << 20,
                                                   .usual = 16,
                                                   .about = "new tokens",
                                                   .whole = true};
inline constexpr ParameterRange kLogProbabilitiesRange = {.name = "log_probabilities",
                                                          .least = 0,
                                                          .most = kMaxLikeliest,
                                                          .usual = std::nullopt,
                                                          .whole = true};

// "[0, 100]", or "(0, 1]" without the least.
std::string ToString(const ParameterRange& range);

// Errors: a FieldError of the range's name for a value that is not in it, as NaN never is. A float
// is compared with the bounds as floats.
absl::Status CheckParameter(const ParameterRange& range, float value);
absl::Status CheckParameter(const ParameterRange& range, int64_t value);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PARAMETER_RANGES_H_
