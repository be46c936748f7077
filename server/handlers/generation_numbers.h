// The numbers of a request for text that all protocols can set, read from any source by name.
#ifndef HIPPODROME_SERVER_HANDLERS_GENERATION_NUMBERS_H_
#define HIPPODROME_SERVER_HANDLERS_GENERATION_NUMBERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "engine/base/status.h"
#include "engine/parameter_ranges.h"
#include "hippodrome/v1/generation.pb.h"

namespace hippodrome {

struct GenerationNumber {
  const ParameterRange* range;
  // That of the two which the range's kind needs.
  void (v1::GenerateRequest::*set_real)(float) = nullptr;
  void (v1::GenerateRequest::*set_whole)(int64_t) = nullptr;
};

inline constexpr GenerationNumber kGenerationNumbers[] = {
    {.range = &kMaxTokensRange, .set_whole = &v1::GenerateRequest::set_max_tokens},
    {.range = &kTemperatureRange, .set_real = &v1::GenerateRequest::set_temperature},
    {.range = &kTopPRange, .set_real = &v1::GenerateRequest::set_top_p},
    {.range = &kTopKRange, .set_whole = &v1::GenerateRequest::set_top_k},
    {.range = &kMinPRange, .set_real = &v1::GenerateRequest::set_min_p},
    {.range = &kTypicalPRange, .set_real = &v1::GenerateRequest::set_typical_p},
    {.range = &kRepetitionPenaltyRange, .set_real = &v1::GenerateRequest::set_repetition_penalty},
    {.range = &kPresencePenaltyRange, .set_real = &v1::GenerateRequest::set_presence_penalty},
    {.range = &kFrequencyPenaltyRange, .set_real = &v1::GenerateRequest::set_frequency_penalty},
};

// Sets those that `source` has: its Integer(name) and Number(name) return
// absl::StatusOr<std::optional<...>>. Errors: those of the source, and CheckParameter()'s. Numbers
// too large for a float become infinite, which no range allows.
template <typename Source>
absl::Status ReadGenerationNumbers(const Source& source, v1::GenerateRequest& request) {
  for (const GenerationNumber& number : kGenerationNumbers) {
    const ParameterRange& range = *number.range;
    if (range.whole) {
      HIPPODROME_ASSIGN_OR_RETURN(const auto value, source.Integer(range.name));
      if (!value) continue;
      HIPPODROME_RETURN_IF_ERROR(CheckParameter(range, *value));
      (request.*number.set_whole)(*value);
    } else {
      HIPPODROME_ASSIGN_OR_RETURN(const auto value, source.Number(range.name));
      if (!value) continue;
      HIPPODROME_RETURN_IF_ERROR(CheckParameter(range, static_cast<float>(*value)));
      (request.*number.set_real)(static_cast<float>(*value));
    }
  }
  return absl::OkStatus();
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_GENERATION_NUMBERS_H_
