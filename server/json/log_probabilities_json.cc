#include "server/json/log_probabilities_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/json/written_log_probability.h"

namespace hippodrome {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Bytes that go on with a character begin none.
int64_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

bool IsUtf8(const std::string& bytes) {
  Utf8Stream stream;
  return stream.Append(bytes) == bytes;
}

OrderedJson Alternatives(const BpeTokenizer* tokenizer, int32_t token, const TokenScores& scores) {
  OrderedJson alternatives = OrderedJson::object();
  for (const LikelyToken& other : scores.likeliest) {
    alternatives[TokenName(tokenizer, other.token)] = WrittenLogProbability(other.log_probability);
  }
  alternatives[TokenName(tokenizer, token)] = WrittenLogProbability(scores.log_probability);
  return alternatives;
}

}  // namespace

std::string TokenName(const BpeTokenizer* tokenizer, int32_t token) {
  const std::string bytes = tokenizer == nullptr ? "" : tokenizer->Bytes(token);
  if (bytes.empty()) return fmt::format("token_id:{}", token);
  if (IsUtf8(bytes) && !bytes.starts_with("bytes:") && !bytes.starts_with("token_id:")) {
    return bytes;
  }
  std::string name = "bytes:";
  for (const char c : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return name;
}

void LogProbabilitiesJson::Add(int32_t token, const TokenScores* scores, bool visible) {
  tokens_.push_back(TokenName(tokenizer_, token));
  if (scores == nullptr) {
    token_log_probabilities_.push_back(nullptr);
    top_log_probabilities_.push_back(nullptr);
  } else {
    token_log_probabilities_.push_back(WrittenLogProbability(scores->log_probability));
    top_log_probabilities_.push_back(Alternatives(tokenizer_, token, *scores));
  }
  const std::string_view bytes =
      visible && tokenizer_ != nullptr ? std::string_view(tokenizer_->Bytes(token)) : "";
  if (bytes.empty()) {
    text_offsets_.push_back(length_ + (characters_.incomplete() ? 1 : 0));
    return;
  }
  // After its first byte, the character in which that lies is the last one, complete or not.
  length_ += CountCharacters(characters_.Append(bytes.substr(0, 1)));
  text_offsets_.push_back(length_ - (characters_.incomplete() ? 0 : 1));
  length_ += CountCharacters(characters_.Append(bytes.substr(1)));
}

void LogProbabilitiesJson::EndText() { length_ += CountCharacters(characters_.Finish()); }

OrderedJson LogProbabilitiesJson::Take() {
  OrderedJson json = {
      {"tokens", std::exchange(tokens_, OrderedJson::array())},
      {"token_logprobs", std::exchange(token_log_probabilities_, OrderedJson::array())},
      {"top_logprobs", std::exchange(top_log_probabilities_, OrderedJson::array())},
      {"text_offset", std::exchange(text_offsets_, OrderedJson::array())}};
  return json;
}

}  // namespace hippodrome
