// What a task asks of a document.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_LM_QUESTION_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_LM_QUESTION_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/lm/documents.h"
#include "tools/evaluate/lm/lm_task.h"

namespace hippodrome {

struct TextContinuation {
  std::string context;
  std::string continuation;
};

struct LmQuestion {
  int64_t line = 0;   // of the document
  std::string group;  // LmTask::by
  // What is scored: a continuation for each choice, and then, for acc_mutual_info, each without a
  // context; one of a task kContinuation; the text of kRolling, without a context.
  std::vector<TextContinuation> scored;
  std::vector<std::string> choices;
  int64_t gold = 0;
  std::vector<std::string> names;  // of the choices, where there are answers
  std::vector<std::string> answers;
  // kRolling: of the counted text, by Python's re.split(r"\s+", text) and in UTF-8.
  int64_t words = 0;
  int64_t bytes = 0;
  std::string prompt;  // kGeneration
};

// The documents that a task has of these: unfolded, with the members of "let". Errors name the
// line.
absl::StatusOr<std::vector<NumberedDocument>> PrepareDocuments(
    const LmTask& task, std::vector<NumberedDocument> documents);

// A document with its answer, as it stands before a question in few-shot prompts. Errors name the
// line and the member of the task.
absl::StatusOr<std::string> ExampleText(const LmTask& task, const NumberedDocument& document);

// The question behind these examples, two line ends after each. Errors as above.
absl::StatusOr<LmQuestion> AskQuestion(const LmTask& task, const NumberedDocument& document,
                                       std::span<const std::string> examples);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_LM_QUESTION_H_
