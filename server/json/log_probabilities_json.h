// Log probabilities of tokens in the form of OpenAI's completions.
#ifndef HIPPODROME_SERVER_JSON_LOG_PROBABILITIES_JSON_H_
#define HIPPODROME_SERVER_JSON_LOG_PROBABILITIES_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/generator.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/utf8_stream.h"

namespace hippodrome {

// A name for a token that no other token has: its text; for bytes that are not UTF-8 by themselves
// "bytes:\xe2\x80", as OpenAI writes them; "token_id:5" where there is no text. A text that begins
// as the last two do is written as bytes.
std::string TokenName(const BpeTokenizer* tokenizer, int32_t token);

// Collects {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of one answer.
//
// Numbers are the engine's floats, written so that the same double is read back: a token has the
// same number in both places. What is not a number or below -9999 is -9999. In top_logprobs the
// token itself stands with the likeliest ones, if it is none of them. Offsets count characters of
// the answer's text: that in which the token's first byte lies. Not thread-safe.
class LogProbabilitiesJson {
 public:
  // `tokenizer` may be null, else it must outlive this object.
  explicit LogProbabilitiesJson(const BpeTokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Adds a token. `scores`: null for the first one of a prompt, before which there is nothing.
  // `visible`: it has part in the text; the end-of-text token has none where it ends it.
  void Add(int32_t token, const TokenScores* scores, bool visible);
  // The text is complete up to here: what follows begins a new character.
  void EndText();
  // What was added since the last call.
  nlohmann::ordered_json Take();

 private:
  const BpeTokenizer* tokenizer_;
  Utf8Stream characters_;
  int64_t length_ = 0;  // characters that are complete
  nlohmann::ordered_json tokens_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json token_log_probabilities_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json top_log_probabilities_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json text_offsets_ = nlohmann::ordered_json::array();
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_LOG_PROBABILITIES_JSON_H_
