#include "tools/evaluate/choices_file.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/status.h"
#include "tools/evaluate/json_lines.h"

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
  return ReadJsonLines<ChoiceQuestion>(text, "questions", ReadChoiceQuestion);
}

}  // namespace hippodrome
