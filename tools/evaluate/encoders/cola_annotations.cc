#include "tools/evaluate/encoders/cola_annotations.h"

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/evaluate/tsv.h"

namespace hippodrome {
namespace {

absl::StatusOr<bool> HasFeature(const TsvRow& row, size_t column, std::string_view name) {
  const std::string_view field = row.fields[column];
  if (field == "0" || field == "1") return field == "1";
  return InvalidArgument("line " + std::to_string(row.line) + ": " + OneLine(name) + " is '" +
                         OneLine(field) + "', expected 0 or 1");
}

}  // namespace

absl::StatusOr<ColaAnnotations> ReadColaAnnotations(std::string_view table) {
  const std::vector<TsvRow> rows = ParseTsv(table);
  if (rows.empty()) return InvalidArgument("there is nothing in the table");
  ColaAnnotations annotations;
  HIPPODROME_ASSIGN_OR_RETURN(
      annotations.texts,
      ReadLabelledTexts(table, {.header = true, .first = "Sentence", .label = "Acceptability"}));
  HIPPODROME_ASSIGN_OR_RETURN(const size_t sentence, FindColumn(rows[0], "Sentence"));
  const std::vector<std::string_view>& names = rows[0].fields;
  for (size_t column = sentence + 1; column < names.size(); ++column) {
    std::vector<size_t>& examples = annotations.features[std::string(names[column])];
    for (size_t i = 1; i < rows.size(); ++i) {
      HIPPODROME_ASSIGN_OR_RETURN(const bool has, HasFeature(rows[i], column, names[column]));
      if (has) examples.push_back(i - 1);
    }
  }
  return annotations;
}

}  // namespace hippodrome
