// SQuAD's JSON, of version 1.1 and 2.0.
#ifndef HIPPODROME_TOOLS_EVALUATE_SQUAD_FILE_H_
#define HIPPODROME_TOOLS_EVALUATE_SQUAD_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

struct SquadQuestion {
  std::string question;
  std::vector<std::string> answers;    // any of them is right; none: there is no answer
  std::vector<int64_t> answer_starts;  // code points of the context; -1 where the file says nothing
  std::string id;                      // empty where the file has none
};

struct SquadParagraph {
  std::string context;
  std::vector<SquadQuestion> questions;
};

struct SquadFile {
  std::vector<SquadParagraph> paragraphs;
  int64_t questions = 0;         // in all paragraphs
  bool some_impossible = false;  // "is_impossible" is true of some: SQuAD 2
};

// {"data": [{"paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text",
// "answer_start"}], "is_impossible"}]}]}]}; other members are ignored. Errors: kInvalidArgument
// with the place at fault, and for a file without questions.
absl::StatusOr<SquadFile> ParseSquad(const std::string& json_text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_SQUAD_FILE_H_
