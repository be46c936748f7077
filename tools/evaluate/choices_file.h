// Questions whose answers are continuations of a context.
#ifndef HIPPODROME_TOOLS_EVALUATE_CHOICES_FILE_H_
#define HIPPODROME_TOOLS_EVALUATE_CHOICES_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/lm/continuation.h"

namespace hippodrome {

struct ChoiceQuestion {
  int64_t line = 0;
  Passage context;
  std::vector<Passage> choices;  // 1 or more, of the context's kind
  int64_t gold = 0;              // the right one
};

// A JSON object in each line, {"context": "A king", "choices": [" rules", " flies"], "gold": 0}; in
// place of all texts of a line there may be arrays of token ids. Other members are left alone,
// empty lines skipped. Errors: kInvalidArgument naming the line and the member at fault, or when
// there are no questions.
absl::StatusOr<std::vector<ChoiceQuestion>> ReadChoices(std::string_view text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_CHOICES_FILE_H_
