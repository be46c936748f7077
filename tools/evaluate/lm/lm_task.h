// A task of `hippodrome eval lm`: what its documents are, what is asked of them, and which figures
// it has. A JSON object; members in capitals are expressions (expression.h).
//
//   {"name": "copa", "title": "..",
//    "kind": "choices",                    or "continuation", "rolling", "generation"
//    "form": "json",                       or "text", "wikitext" (documents.h)
//    "data": ["copa.jsonl", ..],           where a data directory may have the documents
//    "examples": ["copa.train.jsonl"],     and those that shots are taken from
//    "spare_example": false,               whether one example more is drawn than is shown, as the
//                                          harness does where it evaluates on a validation split
//    "unfold": [["question", LIST], ..],   a document for each element, which becomes that member
//    "let": [["name", ANY], ..],           members that others are made of, in this order
//    "by": TEXT,                           figures for each of these beside those of all
//    "delimiter": " ",                     between a context and what continues it
//    "metrics": ["acc", ..],
//
//   choices: one of several is right.
//    "context": TEXT, "choices": TEXTS     continuations of a context, or
//    "contexts": TEXTS, "continuation": TEXT, "choices": TEXTS  contexts of a continuation
//    "gold": INTEGER                       the place of the right one, or
//    "answers": TEXTS, "names": TEXTS      the right ones, as the script of SQuAD compares them
//                                          with what the choices are called, by default themselves
//    "target": TEXT                        what examples say; by default the right choice
//   continuation: whether it is what the model would write.
//    "context": TEXT, "continuation": TEXT
//   rolling: all of a text.
//    "text": TEXT, "counted": TEXT         whose words and bytes count; by default the text's
//   generation: what the model writes.
//    "context": TEXT, "answers": TEXTS, "until": ["\n", ..], "max_tokens": 32,
//    "ignore_case": false, "ignore_punctuation": false}
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_LM_TASK_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_LM_TASK_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/lm/documents.h"

namespace hippodrome {

enum class LmTaskKind : uint8_t { kChoices, kContinuation, kRolling, kGeneration };

// Expressions that a task does not have are null.
struct LmTask {
  std::string name;
  std::string title;
  LmTaskKind kind = LmTaskKind::kChoices;
  DocumentForm form = DocumentForm::kJson;
  std::vector<std::string> data;
  std::vector<std::string> examples;
  bool spare_example = false;
  std::vector<std::pair<std::string, nlohmann::json>> unfold, let;
  nlohmann::json by;
  std::string delimiter = " ";
  std::vector<std::string> metrics;  // of kLmMetrics
  nlohmann::json context, contexts, choices, continuation, gold, answers, names, target, text,
      counted;
  std::vector<std::string> until;
  int64_t max_tokens = 0;
  bool ignore_case = false;
  bool ignore_punctuation = false;
};

// Errors: kInvalidArgument naming the member, its value and what was expected.
absl::StatusOr<LmTask> ParseLmTask(const std::string& json_text);

// The tasks that come with the program, the files of tools/evaluate/lm/tasks, by their names.
std::span<const std::pair<std::string_view, std::string_view>> BuiltInLmTasks();

// The one called `task`, or that of the file at this path. Errors: as above with the path, or
// kNotFound.
absl::StatusOr<LmTask> FindLmTask(const std::string& task);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_LM_TASK_H_
