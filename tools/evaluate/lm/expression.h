// What a task file makes of a document.
//
// An expression is JSON, and so are its value and the document:
//   "Q: {question}"   a text in which {question} stands for that member of the document; {a.b} is a
//                     member of a member, {a.0} an element, {a.*.b} the list of such members of all
//                     elements. Integers, true and false are written out. "{{" and "}}" are braces.
//                     A text of one such place alone is what is there: also a number or a list.
//   [x, y]            a list of values
//   {"of": x, "do": [step, ..]}   what the steps, one after the other, make of x
//   {"any": [x, y]}   the first of these whose members are all there
//   7, true           themselves
//
// A step is a name, or [name, argument, ..], where arguments are expressions:
//   text to text      trim, lower, capitalize (the rest becomes lower case), lower_first,
//   drop_last;
//                     ["replace", old, new], ["regex", pattern, rewrite] (RE2, all matches),
//                     ["before", text], ["after", text] (its first place),
//                     ["slice", from, to], ["slice_through", from, last], ["skip", text]: by
//                     characters; the last drops as many as the text has
//   text to list      words, ["split", separator]
//   list to list      but_first, but_last, sort_unique, ["take", n], ["each", x]: x for each
//                     element, which is {item}
//   list to one       first, last, ["join", separator]
//   anything          ["map", {text: value}], ["index_in", list]
// Spaces are those of Unicode, as for Python's str.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_EXPRESSION_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_EXPRESSION_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

using Document = nlohmann::json;  // an object

// Errors: kNotFound for a member that the document does not have, kInvalidArgument for a step that
// does not fit its value, and for what is no expression.
absl::StatusOr<nlohmann::json> Evaluate(const nlohmann::json& expression, const Document& document);

// The same where the value must be of a kind. kInvalidArgument also where it is not.
absl::StatusOr<std::string> EvaluateText(const nlohmann::json& expression,
                                         const Document& document);
absl::StatusOr<std::vector<std::string>> EvaluateTexts(const nlohmann::json& expression,
                                                       const Document& document);
// Also of a text of digits.
absl::StatusOr<int64_t> EvaluateInteger(const nlohmann::json& expression, const Document& document);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_EXPRESSION_H_
