// Bodies of text-generation-inference: /generate, /generate_stream and /.
#ifndef HIPPODROME_SERVER_JSON_TGI_JSON_H_
#define HIPPODROME_SERVER_JSON_TGI_JSON_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hippodrome/v1/generation.pb.h"
#include "server/json/request_fields.h"

namespace hippodrome {

// One call, and what its answer should look like.
struct TgiCall {
  v1::GenerateRequest request;  // of `inputs`, with log probabilities where the answer shows tokens
  std::string inputs;
  std::optional<int64_t> truncate;  // tokens that are kept of the prompt's end, at least 1
  bool stream = false;              // as the body says; only / asks
  bool details = false;
  bool prefill = false;  // details of the prompt's tokens too
  int64_t candidates =
      1;  // of which the likeliest is the answer, and the others are in the details
  bool full_text = false;  // the prompt in front of the generated text
  bool sampled = false;    // not greedy: the details tell the seed
};

struct TgiToken {
  int32_t id = 0;
  std::string text;  // those of all tokens that are not special make the generated text
  bool special = false;
  std::optional<float> log_probability;  // where there is one
};

enum class TgiFinish : uint8_t { kLength, kEndOfText, kStopString };

struct TgiResult {
  std::string text;
  std::vector<TgiToken> prefill;  // of the prompt, where they are asked for
  std::vector<TgiToken> tokens;
  std::vector<std::vector<TgiToken>> top_tokens;  // of each token, where they are asked for
  TgiFinish finish = TgiFinish::kLength;
  uint64_t seed = 0;
};

extern const RequestFields kTgiFields;
extern const RequestFields kTgiParameters;  // of "parameters"

// Checks syntax and types; ranges are for Handlers, but for those that only this interface has.
// Tokens are drawn if `do_sample` is true, or if one of temperature, top_k, top_p and typical_p is
// there; otherwise the likeliest one is taken. Fields that would change the answer and are not
// supported, and those that are not known, are errors. Errors: kInvalidArgument naming the field,
// or the place of a syntax error.
absl::StatusOr<TgiCall> ParseTgi(const std::string& body);
// Makes of it a call whose answer is streamed: then all tokens are shown, and no candidates or
// details of the prompt can be. Errors: kInvalidArgument naming the field.
absl::Status MakeStreamed(TgiCall& call);

// {"generated_text", "details"} of the first result, with the others as best_of_sequences;
// `listed`: in a list, as / gives it.
std::string TgiBody(const TgiCall& call, std::span<const TgiResult> results, bool listed);
// The streamed event of the token `index` of what is there so far. `last`: the result is whole.
std::string TgiEvent(const TgiCall& call, const TgiResult& result, size_t index, bool last);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_TGI_JSON_H_
