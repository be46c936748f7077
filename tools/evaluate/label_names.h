// What the labels of a data set are among those of a model.
#ifndef HIPPODROME_TOOLS_EVALUATE_LABEL_NAMES_H_
#define HIPPODROME_TOOLS_EVALUATE_LABEL_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/labelled_texts.h"

namespace hippodrome {

// The class of each example: its label's place in `names`. Errors: kInvalidArgument with the line,
// the label and the names.
absl::StatusOr<std::vector<int64_t>> ClassesOf(const std::vector<LabelledText>& examples,
                                               const std::vector<std::string>& names);

// The number that each label is. Errors: kInvalidArgument with the line and the label.
absl::StatusOr<std::vector<double>> ScoresOf(const std::vector<LabelledText>& examples);

// For each of a model's outputs the class that it stands for: by name where the model's labels are
// `names`, upper and lower case alike, in any order; else in order. REQUIRES: as many of both.
std::vector<int64_t> ClassOfOutputs(const std::vector<std::string>& model_labels,
                                    const std::vector<std::string>& names);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LABEL_NAMES_H_
