#include "engine/tokenizer/utf8_stream.h"

#include "engine/tokenizer/utf8.h"

namespace hippodrome {
namespace {

constexpr char kReplacement[] = "\xef\xbf\xbd";

}  // namespace

std::string Utf8Stream::Append(std::string_view bytes) {
  held_.append(bytes);
  std::string result;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Char character = FirstUtf8Char(rest);
    if (character.kind == Utf8Char::Kind::kIncomplete) break;
    if (character.kind == Utf8Char::Kind::kValid) {
      result.append(rest.substr(0, character.length));
    } else {
      result.append(kReplacement);
    }
    rest.remove_prefix(character.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return result;
}

std::string Utf8Stream::Finish() {
  const std::string result = held_.empty() ? "" : kReplacement;
  held_.clear();
  return result;
}

}  // namespace hippodrome
