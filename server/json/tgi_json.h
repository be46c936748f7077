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
  v1::GenerateRequest request;  // of `inputs`
  std::string inputs;
  std::optional<int64_t> truncate;  // tokens that are kept of the prompt's end, at least 1
  bool stream = false;              // as the body says; only / asks
  bool details = false;
  bool full_text = false;  // the prompt in front of the generated text
  bool sampled = false;    // not greedy: the details tell the seed
};

struct TgiToken {
  int32_t id = 0;
  std::string text;  // those of all tokens that are not special make the generated text
  bool special = false;
};

enum class TgiFinish : uint8_t { kLength, kEndOfText, kStopString };

struct TgiResult {
  std::string text;
  std::vector<TgiToken> tokens;
  TgiFinish finish = TgiFinish::kLength;
};

extern const RequestFields kTgiFields;
extern const RequestFields kTgiParameters;  // of "parameters"

// Checks syntax and types; ranges are for Handlers, but for those that only this interface has.
// Tokens are drawn if `do_sample` is true, or if one of temperature, top_k and top_p is there;
// otherwise the likeliest one is taken. Fields that would change the answer and are not supported,
// and those that are not known, are errors. Errors: kInvalidArgument naming the field, or the place
// of a syntax error.
absl::StatusOr<TgiCall> ParseTgi(const std::string& body);

// {"generated_text", "details"}; `listed`: in a list, as / gives it.
std::string TgiBody(const TgiCall& call, const TgiResult& result, bool listed);
// One streamed event. `result` is whole with the last token, else null.
std::string TgiEvent(const TgiCall& call, int64_t index, const TgiToken& token,
                     const TgiResult* result);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_TGI_JSON_H_
