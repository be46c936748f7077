// Tab-separated tables.
#ifndef HIPPODROME_TOOLS_EVALUATE_TSV_H_
#define HIPPODROME_TOOLS_EVALUATE_TSV_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// Views into the table's text.
struct TsvRow {
  int64_t line = 0;  // from 1
  std::vector<std::string_view> fields;
};

// The rows of `text`, which must outlive them. Quotation marks mean nothing. Lines end with \n or
// \r\n; empty ones are no rows; a byte-order mark before the first is dropped.
std::vector<TsvRow> ParseTsv(std::string_view text);

// The place of the column called `name` in the header. Errors: kInvalidArgument with the names that
// there are.
absl::StatusOr<size_t> FindColumn(const TsvRow& header, std::string_view name);

// kInvalidArgument with the row's line when it has not exactly `fields` fields.
absl::Status CheckFields(const TsvRow& row, size_t fields);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_TSV_H_
