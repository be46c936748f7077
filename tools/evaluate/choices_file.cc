#include "tools/evaluate/choices_file.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/json_object.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

using nlohmann::json;

absl::Status WrongMember(const std::string& member, const std::string& what) {
  return InvalidArgument(member + ": expected " + what);
}

absl::StatusOr<Passage> ReadPassage(const std::string& member, const json* value) {
  if (value != nullptr && value->is_string()) return Passage(value->get<std::string>());
  if (value == nullptr || !value->is_array()) {
    return WrongMember(member, "a text or an array of token ids");
  }
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
  std::vector<int32_t> ids;
  for (const json& id : *value) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kMost) {
      return WrongMember(member, "token ids, integers from 0");
    }
    ids.push_back(id.get<int32_t>());
  }
  return Passage(std::move(ids));
}

absl::StatusOr<ChoiceQuestion> ReadChoiceQuestion(const json& object) {
  const auto find = [&](const char* name) {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  };
  ChoiceQuestion question;
  HIPPODROME_ASSIGN_OR_RETURN(question.context, ReadPassage("context", find("context")));
  const json* choices = find("choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) {
    return WrongMember("choices", "an array with one or more");
  }
  for (const json& choice : *choices) {
    const std::string member = "choices[" + std::to_string(question.choices.size()) + "]";
    HIPPODROME_ASSIGN_OR_RETURN(Passage passage, ReadPassage(member, &choice));
    if (passage.index() != question.context.index()) {
      return WrongMember(member, "what the context is: a text, or token ids");
    }
    question.choices.push_back(std::move(passage));
  }
  const json* gold = find("gold");
  if (gold == nullptr || !gold->is_number_unsigned() || gold->get<uint64_t>() >= choices->size()) {
    return WrongMember("gold", "the place of a choice, from 0");
  }
  question.gold = gold->get<int64_t>();
  return question;
}

}  // namespace

absl::StatusOr<std::vector<ChoiceQuestion>> ReadChoices(std::string_view text) {
  std::vector<ChoiceQuestion> questions;
  int64_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto object = ParseJsonObject(std::string(line));
    absl::StatusOr<ChoiceQuestion> question =
        object.ok() ? ReadChoiceQuestion(*object) : absl::StatusOr<ChoiceQuestion>(object.status());
    if (!question.ok()) {
      return InvalidArgument("line " + std::to_string(number) + ": " + Message(question.status()));
    }
    question->line = number;
    questions.push_back(*std::move(question));
  }
  if (questions.empty()) return InvalidArgument("there are no questions");
  return questions;
}

}  // namespace hippodrome
