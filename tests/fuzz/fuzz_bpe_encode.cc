// Any bytes encode and decode to themselves, and stream to the same UTF-8 however they are cut.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/byte_symbols.h"
#include "engine/tokenizer/utf8_stream.h"

namespace hippodrome {
namespace {

// All bytes and a few merges.
std::unique_ptr<BpeTokenizer> MakeTokenizer() {
  std::string vocab = "{";
  for (int byte = 0; byte < 256; ++byte) {
    const std::string symbol = SymbolOfByte(static_cast<uint8_t>(byte));
    vocab += (symbol == "\"" || symbol == "\\" ? "\"\\" : "\"") + symbol +
             "\":" + std::to_string(byte) + ",";
  }
  vocab += R"("aa":256,"aaa":257,"aaaa":258,"th":259,"the":260,"\u0120\u0120":261})";
  auto tokenizer = BpeTokenizer::Parse(vocab, "t h\nth e\naa a\na a\naa aa\n\u0120 \u0120\n");
  if (!tokenizer.ok()) std::abort();
  return *std::move(tokenizer);
}

std::string Stream(std::string_view bytes, size_t cut) {
  Utf8Stream stream;
  std::string text = stream.Append(bytes.substr(0, cut));
  text += stream.Append(bytes.substr(cut));
  return text + stream.Finish();
}

}  // namespace
}  // namespace hippodrome

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const tokenizer = hippodrome::MakeTokenizer().release();
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (tokenizer->Decode(tokenizer->Encode(text)) != text) std::abort();
  const size_t cut = size == 0 ? 0 : std::min<size_t>(data[0], size);
  if (hippodrome::Stream(text, cut) != hippodrome::Stream(text, size)) std::abort();
  return 0;
}
