// Minimal pairs of sentences, in the layout of Marvin and Linzen (2018).
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_EVAL_SYNTAX_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_EVAL_SYNTAX_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// A grammatical sentence and an ungrammatical one that differ in one word.
struct SyntaxPair {
  std::string family;     // the construction, whether its nouns are animate or not
  std::string condition;  // the table's first two columns: "prep_anim/sing_MS_MV_plur_ES"
  std::string masked;     // the sentence with [MASK] in that word's place, and " ." behind
  std::string good;
  std::string bad;
};

struct SyntaxPairs {
  std::vector<SyntaxPair> pairs;
  int64_t skipped = 0;  // rows that differ in more or fewer words, or hold a third sentence
};

// From a table of family, condition, good and bad sentence, without a header. Errors:
// kInvalidArgument with the line of a row with fewer fields, or when there are no pairs.
absl::StatusOr<SyntaxPairs> ReadSyntaxPairs(std::string_view table);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_EVAL_SYNTAX_H_
