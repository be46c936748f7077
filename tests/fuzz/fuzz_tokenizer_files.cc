// Any two texts (parted by the first NUL) are valid tokenizer files or an error; a tokenizer that
// is accepted keeps the text.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/tokenizer/bpe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string merges = input.substr(std::min(end + 1, input.size()));
  const auto tokenizer = hippodrome::BpeTokenizer::Parse(input.substr(0, end), merges);
  if (!tokenizer.ok()) return 0;
  const std::string text = "abc the  then\xff 12's" + merges;
  if ((*tokenizer)->Decode((*tokenizer)->Encode(text)) != text) std::abort();
  return 0;
}
