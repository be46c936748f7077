// Texts, or pairs of texts, with labels, out of a table.
#ifndef HIPPODROME_TOOLS_EVALUATE_LABELLED_TEXTS_H_
#define HIPPODROME_TOOLS_EVALUATE_LABELLED_TEXTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// Where a table has what. A column is a name in the header, or a number from 0.
struct TableLayout {
  bool header = false;
  std::string first;
  std::string second;  // of the second text; empty: there is none
  std::string label;
  // Rows with another number of fields than the first, or with the label `unlabelled`, are left out
  // and counted; else the former are errors.
  bool skip_broken = false;
  std::string unlabelled;
};

// Views into the table's text.
struct LabelledText {
  int64_t line = 0;
  std::string_view first;
  std::string_view second;
  std::string_view label;
};

struct LabelledTexts {
  bool pairs = false;
  std::vector<LabelledText> examples;
  int64_t skipped = 0;
};

// `table` must outlive the result. Errors: kInvalidArgument naming the column or the line at fault,
// or when there are no examples.
absl::StatusOr<LabelledTexts> ReadLabelledTexts(std::string_view table, const TableLayout& layout);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LABELLED_TEXTS_H_
