#include "server/batching/text_decoder.h"

#include <utility>

namespace hippodrome {

TextDecoder::TextDecoder(const BpeTokenizer* tokenizer, std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {}

std::string TextDecoder::Append(int32_t token) {
  if (tokenizer_ == nullptr) return "";
  return stops_.Append(characters_.Append(tokenizer_->Bytes(token)));
}

std::string TextDecoder::Finish() {
  std::string text = stops_.Append(characters_.Finish());
  text += stops_.Finish();
  return text;
}

}  // namespace hippodrome
