#include "tools/evaluate/squad_file.h"

#include <nlohmann/json.hpp>

#include "engine/base/json_object.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

using nlohmann::json;

// A value and where it stands: "data[0].paragraphs[3]".
struct Place {
  const json* value = nullptr;
  std::string path;
};

absl::Status Expected(const std::string& path, const std::string& what) {
  return InvalidArgument(path + ": expected " + what);
}

std::string MemberPath(const Place& object, const char* name) {
  return object.path.empty() ? name : object.path + "." + name;
}

const json* Member(const Place& object, const char* name) {
  if (!object.value->is_object()) return nullptr;
  const auto found = object.value->find(name);
  return found == object.value->end() ? nullptr : &*found;
}

absl::StatusOr<std::vector<Place>> Elements(const Place& object, const char* name) {
  const json* array = Member(object, name);
  const std::string path = MemberPath(object, name);
  if (array == nullptr || !array->is_array()) return Expected(path, "an array");
  std::vector<Place> elements;
  for (const json& element : *array) {
    elements.push_back({&element, path + "[" + std::to_string(elements.size()) + "]"});
  }
  return elements;
}

absl::StatusOr<std::string> Text(const Place& object, const char* name) {
  const json* text = Member(object, name);
  if (text == nullptr || !text->is_string()) return Expected(MemberPath(object, name), "a string");
  return text->get<std::string>();
}

absl::StatusOr<bool> IsImpossible(const Place& question) {
  const json* value = Member(question, "is_impossible");
  if (value == nullptr) return false;
  if (!value->is_boolean()) return Expected(MemberPath(question, "is_impossible"), "true or false");
  return value->get<bool>();
}

absl::StatusOr<int64_t> AnswerStart(const Place& answer) {
  const json* value = Member(answer, "answer_start");
  if (value == nullptr) return -1;
  constexpr uint64_t kMost = 1 << 30;
  if (value->is_number_unsigned() && value->get<uint64_t>() <= kMost) return value->get<int64_t>();
  return Expected(MemberPath(answer, "answer_start"), "an integer from 0 to 2^30");
}

absl::StatusOr<SquadQuestion> ReadQuestion(const Place& place, bool& some_impossible) {
  SquadQuestion question;
  if (Member(place, "id") != nullptr) {
    HIPPODROME_ASSIGN_OR_RETURN(question.id, Text(place, "id"));
  }
  HIPPODROME_ASSIGN_OR_RETURN(question.question, Text(place, "question"));
  HIPPODROME_ASSIGN_OR_RETURN(const bool impossible, IsImpossible(place));
  HIPPODROME_ASSIGN_OR_RETURN(const auto answers, Elements(place, "answers"));
  for (const Place& answer : answers) {
    HIPPODROME_ASSIGN_OR_RETURN(std::string text, Text(answer, "text"));
    HIPPODROME_ASSIGN_OR_RETURN(const int64_t start, AnswerStart(answer));
    question.answers.push_back(std::move(text));
    question.answer_starts.push_back(start);
  }
  if (!impossible && question.answers.empty()) {
    return Expected(MemberPath(place, "answers"), "an answer, or is_impossible");
  }
  if (impossible) {
    question.answers.clear();
    question.answer_starts.clear();
  }
  some_impossible = some_impossible || impossible;
  return question;
}

absl::StatusOr<SquadParagraph> ReadParagraph(const Place& place, bool& some_impossible) {
  SquadParagraph paragraph;
  HIPPODROME_ASSIGN_OR_RETURN(paragraph.context, Text(place, "context"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto questions, Elements(place, "qas"));
  for (const Place& question : questions) {
    HIPPODROME_ASSIGN_OR_RETURN(SquadQuestion read, ReadQuestion(question, some_impossible));
    paragraph.questions.push_back(std::move(read));
  }
  return paragraph;
}

}  // namespace

absl::StatusOr<SquadFile> ParseSquad(const std::string& json_text) {
  HIPPODROME_ASSIGN_OR_RETURN(const json root, ParseJsonObject(json_text));
  HIPPODROME_ASSIGN_OR_RETURN(const auto articles, Elements({&root, ""}, "data"));
  SquadFile file;
  for (const Place& article : articles) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto paragraphs, Elements(article, "paragraphs"));
    for (const Place& place : paragraphs) {
      HIPPODROME_ASSIGN_OR_RETURN(SquadParagraph paragraph,
                                  ReadParagraph(place, file.some_impossible));
      file.questions += std::ssize(paragraph.questions);
      file.paragraphs.push_back(std::move(paragraph));
    }
  }
  if (file.questions == 0) return InvalidArgument("data: there are no questions");
  return file;
}

}  // namespace hippodrome
