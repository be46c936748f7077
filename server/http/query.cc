#include "server/http/query.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

int HexDigit(char c) {
  if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return -1;
  return absl::ascii_isdigit(static_cast<unsigned char>(c)) ? c - '0'
                                                            : absl::ascii_tolower(c) - 'a' + 10;
}

std::optional<std::string> DecodeForm(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  return DecodePercent(text);
}

}  // namespace

std::optional<std::string> DecodePercent(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

absl::StatusOr<std::map<std::string, std::string>> ParseQuery(std::string_view query) {
  std::map<std::string, std::string> values;
  if (query.empty()) return values;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(std::string(query), '&'))) {
    const size_t sign = part.find('=');
    std::optional<std::string> name = DecodeForm(part.substr(0, sign));
    std::optional<std::string> value =
        DecodeForm(sign == std::string::npos ? "" : part.substr(sign + 1));
    if (!name || !value) return InvalidArgument("the query has '%' without two digits behind it");
    if (!values.emplace(*name, *std::move(value)).second) {
      return FieldError(*name, "it is in the query twice");
    }
  }
  return values;
}

}  // namespace hippodrome
