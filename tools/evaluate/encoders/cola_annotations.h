// CoLA's development set with its grammatical features (Warstadt and Bowman, 2019).
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_COLA_ANNOTATIONS_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_COLA_ANNOTATIONS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/labelled_texts.h"

namespace hippodrome {

struct ColaAnnotations {
  LabelledTexts texts;  // label "1": acceptable
  // For each feature ("Question") the examples that have it, as indices.
  std::map<std::string, std::vector<size_t>> features;
};

// From the published tables, major or minor features: a header, whose columns behind "Sentence" are
// the features, 0 or 1. `table` must outlive the result. Errors: kInvalidArgument naming the column
// or the line at fault.
absl::StatusOr<ColaAnnotations> ReadColaAnnotations(std::string_view table);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_COLA_ANNOTATIONS_H_
