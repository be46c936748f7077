#include "server/handlers/generation_call.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/parameter_ranges.h"
#include "engine/state/rewind.h"

namespace hippodrome {
namespace {

// What a stop string holds back, and an incomplete character, are pending where a state is saved.
static_assert(RequestLimits().max_stop_bytes + 2 == int64_t{kMaxPendingText});

uint64_t RandomSeed() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

absl::Status CheckStops(const v1::GenerateRequest& request, const RequestLimits& limits) {
  if (request.stop_size() > limits.max_stops) {
    return FieldError("stop", fmt::format("{} stop strings, expected at most {}",
                                          request.stop_size(), limits.max_stops));
  }
  for (const std::string& stop : request.stop()) {
    if (stop.empty() || static_cast<int64_t>(stop.size()) > limits.max_stop_bytes) {
      return FieldError("stop", fmt::format("a stop string of {} bytes, expected 1 to {}",
                                            stop.size(), limits.max_stop_bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPrompt(const v1::GenerateRequest& request) {
  if (!request.state().empty()) return absl::OkStatus();  // CheckStart() knows what it needs
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText:
      if (request.text().empty()) return FieldError("prompt", "the text is empty");
      return absl::OkStatus();
    case v1::GenerateRequest::kTokenIds:
      if (request.token_ids().ids().empty()) return FieldError("prompt", "there are no token ids");
      return absl::OkStatus();
    default:
      return FieldError("prompt", "expected a text or token ids");
  }
}

absl::StatusOr<SamplingParameters> ReadSampling(const v1::GenerateRequest& request) {
  SamplingFields fields;
  if (request.has_temperature()) fields.temperature = request.temperature();
  if (request.has_top_k()) fields.top_k = request.top_k();
  if (request.has_top_p()) fields.top_p = request.top_p();
  if (request.has_min_p()) fields.min_p = request.min_p();
  if (request.has_typical_p()) fields.typical_p = request.typical_p();
  fields.seed = request.has_seed() ? request.seed() : RandomSeed();
  return ToSamplingParameters(fields);
}

absl::Status CheckScoring(const v1::GenerateRequest& request) {
  HIPPODROME_RETURN_IF_ERROR(
      CheckParameter(kLogProbabilitiesRange, int64_t{request.log_probabilities()}));
  if (!request.score_prompt()) return absl::OkStatus();
  if (!request.state().empty()) {
    return FieldError("score_prompt", "the state does not have what its tokens were scored by");
  }
  if (request.has_log_probabilities()) return absl::OkStatus();
  return FieldError("score_prompt", "it needs log_probabilities");
}

absl::StatusOr<LogitChanges> ReadChanges(const v1::GenerateRequest& request,
                                         const RequestLimits& limits, int64_t vocab_size) {
  if (request.logit_bias_size() > limits.max_logit_bias) {
    return FieldError("logit_bias", fmt::format("{} entries, expected at most {}",
                                                request.logit_bias_size(), limits.max_logit_bias));
  }
  LogitChanges changes{.presence_penalty = request.presence_penalty(),
                       .frequency_penalty = request.frequency_penalty()};
  if (request.has_repetition_penalty()) changes.repetition_penalty = request.repetition_penalty();
  for (const auto& [token, bias] : request.logit_bias()) changes.bias.push_back({token, bias});
  HIPPODROME_RETURN_IF_ERROR(CheckLogitChanges(changes, vocab_size));
  return changes;
}

constexpr size_t kMaxSaltBytes = 256;

absl::Status ReadCaching(const v1::GenerateRequest& request, GenerationCall& call) {
  if (request.cache_salt().size() > kMaxSaltBytes) {
    return FieldError("cache_salt", fmt::format("{} bytes, expected at most {}",
                                                request.cache_salt().size(), kMaxSaltBytes));
  }
  GenerationRequest& wanted = call.request;
  if (request.has_cache_prompt()) wanted.cache_prompt = request.cache_prompt();
  wanted.cache_salt = CacheSalt(call.caller, request.cache_salt());
  wanted.cache_marks.assign(request.cache_marks().begin(), request.cache_marks().end());
  return absl::OkStatus();
}

}  // namespace

// Multiples of an odd number modulo 2^64 differ, and so do their images under the bijection below.
uint64_t ChoiceSeed(uint64_t seed, int64_t choice) {
  if (choice == 0) return seed;
  uint64_t z = seed + static_cast<uint64_t>(choice) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The key's length comes first, so that no key and salt read like another pair.
std::string CacheSalt(const Caller& caller, const std::string& salt) {
  return fmt::format("{} {}{}", caller.key.size(), caller.key, salt);
}

// What is cheap to refuse comes before the prompt.
absl::StatusOr<GenerationCall> ToCall(const v1::GenerateRequest& request,
                                      const ServedDecoder& model, const RequestLimits& limits,
                                      const Caller& caller) {
  GenerationCall call;
  HIPPODROME_RETURN_IF_ERROR(CheckPrompt(request));
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kMaxTokensRange, request.max_tokens()));
  HIPPODROME_ASSIGN_OR_RETURN(call.request.sampling, ReadSampling(request));
  HIPPODROME_RETURN_IF_ERROR(CheckStops(request, limits));
  HIPPODROME_RETURN_IF_ERROR(CheckScoring(request));
  HIPPODROME_ASSIGN_OR_RETURN(call.request.changes,
                              ReadChanges(request, limits, model.info().vocab_size()));
  if (request.choice() < 0) return FieldError("choice", "expected 0 or more");
  call.caller = caller;
  if (request.has_text()) {
    HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, model.Tokenizer());
    const auto begin = Caller::Clock::now();
    call.request.prompt = tokenizer->Encode(request.text());
    model.Tokenized(caller.api, Caller::Clock::now() - begin);
  } else {
    const auto& ids = request.token_ids().ids();
    call.request.prompt.assign(ids.begin(), ids.end());
  }
  if (request.stop_size() > 0) HIPPODROME_RETURN_IF_ERROR(model.Tokenizer().status());
  HIPPODROME_RETURN_IF_ERROR(ReadCaching(request, call));
  call.prompt_only = request.has_max_tokens() && request.max_tokens() == 0;
  call.request.max_tokens = request.has_max_tokens() ? request.max_tokens()
                                                     : static_cast<int64_t>(*kMaxTokensRange.usual);
  // The engine takes in a prompt to make a token after it.
  if (call.prompt_only) call.request.max_tokens = 1;
  call.request.ignore_eos = request.ignore_eos();
  if (request.has_log_probabilities()) {
    call.request.likeliest = request.log_probabilities();
  }
  call.request.score_prompt = request.score_prompt();
  call.stop.assign(request.stop().begin(), request.stop().end());
  return call;
}

absl::StatusOr<StartingPoint> GoBack(std::shared_ptr<const SavedState> state, int64_t position) {
  StartingPoint start{.seed = state->seed};
  if (position == state->position) {
    start.state = std::move(state);
    return start;
  }
  HIPPODROME_ASSIGN_OR_RETURN(Rewound rewound, Rewind(*state, position));
  start.tokens = std::move(rewound.tokens);
  if (!rewound.state) return start;
  // What was loaded counts as in use until nobody goes on from it.
  struct Earlier {
    std::shared_ptr<const SavedState> loaded;
    SavedState state;
  };
  const auto earlier = std::make_shared<Earlier>(std::move(state), *std::move(rewound.state));
  start.state = std::shared_ptr<const SavedState>(earlier, &earlier->state);
  return start;
}

absl::Status GoOnFrom(const StartingPoint& start, const v1::GenerateRequest& request,
                      GenerationCall& call) {
  std::vector<int32_t>& prompt = call.request.prompt;
  prompt.insert(prompt.begin(), start.tokens.begin(), start.tokens.end());
  if (prompt.empty() && (start.state == nullptr || !start.state->last_token)) {
    return FieldError("prompt",
                      "the state has no token that is still to be taken in: expected a text or "
                      "token ids");
  }
  if (!request.has_seed()) call.request.sampling.seed = start.seed;
  call.request.start = start.state;
  return absl::OkStatus();
}

int64_t Scores(const GenerationCall& call) {
  return call.scored_tokens() * (1 + call.request.likeliest.value_or(0));
}

absl::Status CheckScores(int64_t scores, const RequestLimits& limits) {
  if (scores <= limits.max_scores) return absl::OkStatus();
  return absl::OutOfRangeError(
      fmt::format("the answer may have {} log probabilities: tokens, times one and their "
                  "alternatives; expected at most {}",
                  scores, limits.max_scores));
}

}  // namespace hippodrome
