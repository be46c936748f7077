#include "tests/testing/byte_tokenizer.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace hippodrome {
namespace {

// GPT-2 writes printable bytes as themselves and the n-th other one as U+0100 + n.
bool Printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::string JsonEscape(int code_point) {
  char text[16];
  std::snprintf(text, sizeof(text), "\\u%04x", static_cast<unsigned>(code_point));
  return text;
}

}  // namespace

std::unique_ptr<BpeTokenizer> NewByteTokenizer() {
  std::string vocab = "{";
  int others = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const int code_point = Printable(byte) ? byte : 0x100 + others++;
    vocab += "\"" + JsonEscape(code_point) + "\":" + std::to_string(byte) + ",";
  }
  vocab += "\"<|endoftext|>\":256}";
  auto tokenizer = BpeTokenizer::Parse(vocab, "#version: 0.2\n");
  if (!tokenizer.ok()) std::abort();
  return *std::move(tokenizer);
}

}  // namespace hippodrome
