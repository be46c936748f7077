#include "tools/evaluate/tsv.h"

#include <algorithm>

#include "engine/base/one_line.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

// Takes the text up to the next `end`, or all of it, off `rest`.
std::string_view TakeUntil(char end, std::string_view& rest) {
  const size_t length = std::min(rest.find(end), rest.size());
  const std::string_view part = rest.substr(0, length);
  rest.remove_prefix(std::min(length + 1, rest.size()));
  return part;
}

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields(1 + std::count(line.begin(), line.end(), '\t'));
  for (std::string_view& field : fields) field = TakeUntil('\t', line);
  return fields;
}

}  // namespace

std::vector<TsvRow> ParseTsv(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<TsvRow> rows;
  for (int64_t number = 1; !text.empty(); ++number) {
    std::string_view line = TakeUntil('\n', text);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) rows.push_back({number, Fields(line)});
  }
  return rows;
}

absl::StatusOr<size_t> FindColumn(const TsvRow& header, std::string_view name) {
  const auto found = std::find(header.fields.begin(), header.fields.end(), name);
  if (found != header.fields.end()) return found - header.fields.begin();
  std::string names;
  for (const std::string_view field : header.fields) {
    names += (names.empty() ? "" : ", ") + std::string(field);
  }
  return InvalidArgument("there is no column '" + std::string(name) + "', the header has " +
                         OneLine(names));
}

absl::Status CheckFields(const TsvRow& row, size_t fields) {
  if (row.fields.size() == fields) return absl::OkStatus();
  return InvalidArgument("line " + std::to_string(row.line) + " has " +
                         std::to_string(row.fields.size()) + " field(s), expected " +
                         std::to_string(fields));
}

}  // namespace hippodrome
