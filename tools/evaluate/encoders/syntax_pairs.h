// Pairs of sentences that differ in one word, of which one is grammatical.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_SYNTAX_PAIRS_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_SYNTAX_PAIRS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

struct SyntaxPair {
  // Marvin and Linzen's construction, whether its nouns are animate or not; Linzen's number of
  // attractors; else empty.
  std::string family;
  std::string condition;  // Marvin and Linzen's first two columns, "prep_anim/sing_MS_MV_plur_ES"
  std::string masked;     // the sentence with [MASK] in the word's place
  std::string good;
  std::string bad;
};

// How a table is laid out.
enum class SyntaxLayout : uint8_t {
  kPairs,         // good and bad sentence
  kMarvinLinzen,  // family, condition, good and bad sentence; sentences get " ." (2018)
  kAttractors,    // sentences with a verb, whose number is changed (Linzen et al. 2016)
};

struct SyntaxPairs {
  SyntaxLayout layout = SyntaxLayout::kPairs;
  std::vector<SyntaxPair> pairs;
  int64_t skipped = 0;  // rows
};

// From a table of one of these layouts. One whose header has orig_sentence is of the third, and
// needs n_intervening, n_diff_intervening, verb_pos and verb_index (from 1) besides; of its rows
// those are kept where all intervening nouns, 1 to 4, are attractors: of the other number than the
// subject. Of the others, which have no header, those are kept that differ in one word and hold no
// further sentence. Errors: kInvalidArgument with the line at fault, or when there are no pairs.
absl::StatusOr<SyntaxPairs> ReadSyntaxPairs(std::string_view table);

// The form of a verb in the present tense in the other number: "is" and "are", "carries" and
// "carry".
std::string PluralVerb(std::string_view singular);
std::string SingularVerb(std::string_view plural);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_SYNTAX_PAIRS_H_
