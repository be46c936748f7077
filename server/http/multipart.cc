#include "server/http/multipart.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "server/http/http_head.h"

namespace hippodrome {
namespace {

constexpr size_t kMostParts = 16;
constexpr size_t kMostHeadBytes = 8 << 10;
constexpr size_t kMostBoundaryBytes = 70;
constexpr std::string_view kFormLineEnd = "\r\n";

using FormParameters = std::map<std::string, std::string>;

absl::Status WrongForm(const std::string& message) {
  return InvalidArgument("the form: " + message);
}

bool IsTokenCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsBoundaryCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
}

std::string_view TakeSpaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? "" : text.substr(begin);
}

std::string TakeToken(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsTokenCharacter);
  const std::string token(text.begin(), end);
  text.remove_prefix(token.size());
  return token;
}

// Behind the first quote. Browsers and curl escape a quote by a backslash, or write %22.
std::optional<std::string> TakeQuoted(std::string_view& text) {
  std::string value;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    if (escape) ++i;
    value += text[i];
  }
  return std::nullopt;
}

// "; NAME=VALUE; .."; nothing for anything else, and for names that are there twice.
std::optional<FormParameters> ReadFormParameters(std::string_view text) {
  FormParameters parameters;
  for (text = TakeSpaces(text); !text.empty(); text = TakeSpaces(text)) {
    if (text.front() != ';') return std::nullopt;
    text = TakeSpaces(text.substr(1));
    const std::string name = absl::AsciiStrToLower(TakeToken(text));
    if (name.empty() || !text.starts_with('=')) return std::nullopt;
    text.remove_prefix(1);
    const bool quoted = text.starts_with('"');
    const std::optional<std::string> value = quoted ? TakeQuoted(text) : TakeToken(text);
    if (!value || (!quoted && value->empty())) return std::nullopt;
    if (!parameters.emplace(name, *value).second) return std::nullopt;
  }
  return parameters;
}

// The parameters of `field`, whose value must be of `type`.
std::optional<FormParameters> ReadFormField(std::string_view field, std::string_view type) {
  const std::string_view value = field.substr(0, field.find(';'));
  const std::string_view trimmed = value.substr(0, value.find_last_not_of(" \t") + 1);
  if (!absl::EqualsIgnoreCase(absl::string_view(trimmed.data(), trimmed.size()),
                              absl::string_view(type.data(), type.size()))) {
    return std::nullopt;
  }
  return ReadFormParameters(field.substr(value.size()));
}

absl::StatusOr<std::string> Boundary(std::string_view content_type) {
  const std::optional<FormParameters> parameters =
      ReadFormField(content_type, "multipart/form-data");
  if (!parameters) {
    return InvalidArgument("the Content-Type is '" + OneLine(content_type) +
                           "', expected multipart/form-data with a boundary");
  }
  const auto found = parameters->find("boundary");
  if (found == parameters->end()) return WrongForm("its Content-Type has no boundary");
  const std::string& boundary = found->second;
  if (boundary.empty() || boundary.size() > kMostBoundaryBytes || boundary.back() == ' ' ||
      !std::all_of(boundary.begin(), boundary.end(), IsBoundaryCharacter)) {
    return WrongForm("its boundary is none: expected 1 to 70 of A-Z a-z 0-9 '()+_,-./:=?");
  }
  return boundary;
}

// Takes what stands before `end`, and `end`; nothing where that is not there.
std::optional<std::string_view> TakeUpTo(std::string_view& text, std::string_view end) {
  const size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return taken;
}

// One field of the head of a part.
absl::Status ReadHeadLine(std::string_view line, std::optional<FormParameters>& disposition) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || !IsFieldText(line)) {
    return WrongForm("a part has a line in its head that is no field");
  }
  const std::string name = absl::AsciiStrToLower(std::string(line.substr(0, colon)));
  if (name == "content-transfer-encoding") return WrongForm("a part is encoded: send it as it is");
  if (name != "content-disposition") return absl::OkStatus();
  if (disposition) return WrongForm("a part has two Content-Disposition");
  disposition = ReadFormField(TakeSpaces(line.substr(colon + 1)), "form-data");
  if (disposition) return absl::OkStatus();
  return WrongForm("a part's Content-Disposition is none: expected form-data; name=\"..\"");
}

absl::StatusOr<FormPart> ReadHead(std::string_view& rest) {
  std::string_view head = rest.substr(0, kMostHeadBytes);
  std::optional<FormParameters> disposition;
  for (;;) {
    const std::optional<std::string_view> line = TakeUpTo(head, kFormLineEnd);
    if (!line) return WrongForm("the head of a part has no end, or more than 8 KiB");
    if (line->empty()) break;
    HIPPODROME_RETURN_IF_ERROR(ReadHeadLine(*line, disposition));
  }
  rest.remove_prefix(head.data() - rest.data());
  if (!disposition || !disposition->contains("name")) return WrongForm("a part has no name");
  FormPart part{.name = disposition->at("name")};
  const auto file = disposition->find("filename");
  if (file != disposition->end()) part.file_name = file->second;
  return part;
}

}  // namespace

absl::StatusOr<std::vector<FormPart>> ParseMultipart(std::string_view content_type,
                                                     std::string_view body) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string boundary, Boundary(content_type));
  const std::string first = "--" + boundary;
  const std::string next = std::string(kFormLineEnd) + first;
  if (!body.starts_with(first)) return WrongForm("it does not begin with its boundary");
  body.remove_prefix(first.size());
  std::vector<FormPart> parts;
  while (body.starts_with(kFormLineEnd)) {
    body.remove_prefix(kFormLineEnd.size());
    if (parts.size() == kMostParts) return WrongForm("it has more than 16 parts");
    HIPPODROME_ASSIGN_OR_RETURN(FormPart part, ReadHead(body));
    const std::optional<std::string_view> content = TakeUpTo(body, next);
    if (!content) return WrongForm("a part does not end with the boundary");
    part.content = *content;
    parts.push_back(std::move(part));
  }
  if (body == "--" || body == "--\r\n") return parts;
  return WrongForm("something else than its end or a part stands behind a boundary");
}

}  // namespace hippodrome
