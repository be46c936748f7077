#include "server/handlers/inference_parameters.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/handlers/generation_numbers.h"

namespace hippodrome {
namespace {

using inference::InferParameter;

// Doubles are exact up to here.
constexpr double kLargestExact = 9007199254740992;

// The parameters of a request, by name and type.
class Parameters {
 public:
  explicit Parameters(const inference::ModelInferRequest& request)
      : parameters_(request.parameters()) {}

  absl::StatusOr<std::optional<bool>> Bool(const char* name) const {
    const InferParameter* value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->has_bool_param()) return FieldError(name, "expected true or false");
    return value->bool_param();
  }

  absl::StatusOr<std::optional<int64_t>> Integer(const char* name) const {
    const InferParameter* value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (value->has_int64_param()) return value->int64_param();
    // Some clients have no other numbers.
    const double number = value->double_param();
    if (!value->has_double_param() || std::abs(number) > kLargestExact ||
        number != std::trunc(number)) {
      return FieldError(name, "expected an integer");
    }
    return static_cast<int64_t>(number);
  }

  absl::StatusOr<std::optional<double>> Number(const char* name) const {
    const InferParameter* value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (value->has_double_param()) return value->double_param();
    if (value->has_int64_param()) return static_cast<double>(value->int64_param());
    return FieldError(name, "expected a number");
  }

  absl::StatusOr<std::optional<std::string>> Text(const char* name) const {
    const InferParameter* value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->has_string_param()) return FieldError(name, "expected a string");
    return value->string_param();
  }

  // Negative ones wrap.
  absl::StatusOr<std::optional<uint64_t>> Seed(const char* name) const {
    const InferParameter* value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (value->has_uint64_param()) return value->uint64_param();
    HIPPODROME_ASSIGN_OR_RETURN(const auto integer, Integer(name));
    return static_cast<uint64_t>(*integer);
  }

 private:
  const InferParameter* Find(const char* name) const {
    const auto it = parameters_.find(name);
    return it == parameters_.end() ? nullptr : &it->second;
  }

  const google::protobuf::Map<std::string, InferParameter>& parameters_;
};

absl::Status ReadTruncate(const Parameters& parameters, v1::Truncate& truncate) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto enabled, parameters.Bool("truncate"));
  truncate.set_enabled(enabled.value_or(false));
  HIPPODROME_ASSIGN_OR_RETURN(auto direction, parameters.Text("truncation_direction"));
  if (!direction) return absl::OkStatus();
  absl::AsciiStrToLower(&*direction);
  if (*direction != "left" && *direction != "right") {
    return FieldError("truncation_direction", "expected \"left\" or \"right\"");
  }
  truncate.set_direction(*direction == "left" ? v1::TRUNCATION_DIRECTION_LEFT
                                              : v1::TRUNCATION_DIRECTION_RIGHT);
  return absl::OkStatus();
}

std::vector<const char*> GenerateParameterNames() {
  std::vector<const char*> names = {"seed", "stop", "ignore_eos"};
  for (const GenerationNumber& number : kGenerationNumbers) names.push_back(number.range->name);
  return names;
}

}  // namespace

absl::Status RefuseOtherParameters(const inference::ModelInferRequest& request,
                                   std::span<const char* const> known) {
  for (const auto& [name, value] : request.parameters()) {
    const auto same = [&name = name](const char* other) { return name == other; };
    if (std::any_of(known.begin(), known.end(), same)) continue;
    return FieldError(name, "this call has no such parameter");
  }
  return absl::OkStatus();
}

absl::StatusOr<EncoderParameters> ReadEncoderParameters(
    const inference::ModelInferRequest& request) {
  const Parameters parameters(request);
  EncoderParameters result;
  HIPPODROME_RETURN_IF_ERROR(ReadTruncate(parameters, result.truncate));
  HIPPODROME_ASSIGN_OR_RETURN(const auto raw_scores, parameters.Bool("raw_scores"));
  result.raw_scores = raw_scores.value_or(false);
  HIPPODROME_ASSIGN_OR_RETURN(const auto normalize, parameters.Bool("normalize"));
  result.normalize = normalize.value_or(true);
  HIPPODROME_ASSIGN_OR_RETURN(result.top_k, parameters.Integer("top_k"));
  return result;
}

absl::StatusOr<v1::GenerateRequest> ReadGenerateParameters(
    const inference::ModelInferRequest& request) {
  const Parameters parameters(request);
  HIPPODROME_RETURN_IF_ERROR(RefuseOtherParameters(request, GenerateParameterNames()));
  v1::GenerateRequest result;
  HIPPODROME_RETURN_IF_ERROR(ReadGenerationNumbers(parameters, result));
  HIPPODROME_ASSIGN_OR_RETURN(const auto seed, parameters.Seed("seed"));
  if (seed) result.set_seed(*seed);
  HIPPODROME_ASSIGN_OR_RETURN(auto stop, parameters.Text("stop"));
  if (stop) result.add_stop(*std::move(stop));
  HIPPODROME_ASSIGN_OR_RETURN(const auto ignore_eos, parameters.Bool("ignore_eos"));
  result.set_ignore_eos(ignore_eos.value_or(false));
  return result;
}

}  // namespace hippodrome
