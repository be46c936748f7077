#include "tools/evaluate/lm/documents.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/json_object.h"
#include "engine/base/status.h"
#include "tools/evaluate/json_lines.h"

namespace hippodrome {
namespace {

using Documents = std::vector<NumberedDocument>;

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// "[{..}, ..]", the places of whose elements the parser does not tell.
absl::StatusOr<Documents> ReadArray(std::string_view text) {
  HIPPODROME_ASSIGN_OR_RETURN(nlohmann::json object,
                              ParseJsonObject("{\"all\": " + std::string(text) + "}"));
  if (object.size() != 1) return InvalidArgument("something stands behind the array");
  Documents documents;
  for (nlohmann::json& element : object["all"]) {
    if (!element.is_object()) {
      return InvalidArgument("element " + std::to_string(documents.size()) +
                             ": expected an object");
    }
    documents.push_back({1, std::move(element)});
  }
  return documents;
}

// A document of what comes before each line that `begins` another one, which belongs to that if
// `keep`.
template <typename Begins>
Documents SplitText(std::string_view text, const char* member, bool keep, const Begins& begins) {
  Documents documents;
  std::string current;
  int64_t first = 1;
  const auto finish = [&](int64_t next) {
    if (!IsBlank(current)) documents.push_back({first, {{member, std::move(current)}}});
    current.clear();
    first = next;
  };
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    const bool another = begins(line);
    if (another) finish(keep ? number : number + 1);
    if (keep || !another) current += line;
  }
  finish(0);
  return documents;
}

absl::StatusOr<Documents> Read(std::string_view text, DocumentForm form) {
  switch (form) {
    case DocumentForm::kText:
      return SplitText(text, "text", false, [](std::string_view line) {
        return line.substr(0, line.find('\n')) == "<|endoftext|>";
      });
    case DocumentForm::kWikiText: {
      static const RE2 heading(" = [^=]* = \\n?");
      return SplitText(text, "page", true, [](std::string_view line) {
        return RE2::FullMatch({line.data(), line.size()}, heading);
      });
    }
    case DocumentForm::kJson:
      break;
  }
  const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (text.substr(begin, 1) == "[") return ReadArray(text);
  return ReadJsonLines<NumberedDocument>(text, "documents", [](nlohmann::json object) {
    return absl::StatusOr<NumberedDocument>(NumberedDocument{.document = std::move(object)});
  });
}

}  // namespace

absl::StatusOr<Documents> ReadDocuments(std::string_view text, DocumentForm form) {
  HIPPODROME_ASSIGN_OR_RETURN(Documents documents, Read(text, form));
  if (documents.empty()) return InvalidArgument("there are no documents");
  return documents;
}

}  // namespace hippodrome
