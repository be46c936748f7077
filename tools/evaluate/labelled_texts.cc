#include "tools/evaluate/labelled_texts.h"

#include <charconv>
#include <span>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/evaluate/tsv.h"

namespace hippodrome {
namespace {

struct Columns {
  size_t first = 0;
  size_t second = 0;  // read for pairs only
  size_t label = 0;
};

// A number from 0, or else a name where there is a header.
absl::StatusOr<size_t> ResolveColumn(const TsvRow& top, bool header, const std::string& column) {
  size_t number = 0;
  const char* end = column.data() + column.size();
  const auto [stop, error] = std::from_chars(column.data(), end, number);
  if (error != std::errc() || stop != end) {
    if (header) return FindColumn(top, column);
    return InvalidArgument("the column '" + OneLine(column) +
                           "' is no number, and the table has no header with names");
  }
  if (number < top.fields.size()) return number;
  return InvalidArgument("there is no column " + column + ", line " + std::to_string(top.line) +
                         " has " + std::to_string(top.fields.size()) + " field(s)");
}

absl::StatusOr<Columns> ResolveColumns(const TsvRow& top, const TableLayout& layout) {
  Columns columns;
  HIPPODROME_ASSIGN_OR_RETURN(columns.first, ResolveColumn(top, layout.header, layout.first));
  HIPPODROME_ASSIGN_OR_RETURN(columns.label, ResolveColumn(top, layout.header, layout.label));
  if (layout.second.empty()) return columns;
  HIPPODROME_ASSIGN_OR_RETURN(columns.second, ResolveColumn(top, layout.header, layout.second));
  return columns;
}

}  // namespace

absl::StatusOr<LabelledTexts> ReadLabelledTexts(std::string_view table, const TableLayout& layout) {
  const std::vector<TsvRow> rows = ParseTsv(table);
  if (rows.empty()) return InvalidArgument("there is nothing in the table");
  HIPPODROME_ASSIGN_OR_RETURN(const Columns columns, ResolveColumns(rows[0], layout));
  LabelledTexts texts{.pairs = !layout.second.empty()};
  for (const TsvRow& row : std::span(rows).subspan(layout.header ? 1 : 0)) {
    const absl::Status status = CheckFields(row, rows[0].fields.size());
    if (!status.ok() && !layout.skip_broken) return status;
    if (!status.ok() ||
        (!layout.unlabelled.empty() && row.fields[columns.label] == layout.unlabelled)) {
      ++texts.skipped;
      continue;
    }
    texts.examples.push_back({.line = row.line,
                              .first = row.fields[columns.first],
                              .second = texts.pairs ? row.fields[columns.second] : "",
                              .label = row.fields[columns.label]});
  }
  if (texts.examples.empty()) return InvalidArgument("the table has no labelled rows");
  return texts;
}

}  // namespace hippodrome
