#include "tools/evaluate/encoders/scrolls_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/json_object.h"
#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/evaluate/json_lines.h"

namespace hippodrome {
namespace {

using nlohmann::json;

constexpr std::string_view kBlankLine = "\n\n";

absl::Status MemberError(const std::string& member, const std::string& what) {
  return InvalidArgument(member + ": expected " + what);
}

absl::StatusOr<std::string> StringMember(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return MemberError(name, "a string");
  return found->get<std::string>();
}

// One space between words, none around them.
std::string WithSingleSpaces(std::string_view text) {
  std::string result;
  bool between = false;
  for (const char c : text) {
    const bool space = std::string_view(" \t\r\n").find(c) != std::string::npos;
    if (!space && between && !result.empty()) result += ' ';
    if (!space) result += c;
    between = space;
  }
  return result;
}

// The question before the first blank line, and what is behind it.
absl::StatusOr<std::pair<std::string_view, std::string_view>> SplitInput(std::string_view input) {
  const size_t end = input.find(kBlankLine);
  if (end == std::string_view::npos)
    return MemberError("input", "a blank line behind the question");
  return std::pair(input.substr(0, end), input.substr(end + kBlankLine.size()));
}

// Where the option's mark is, at a line's beginning but for spaces; npos if nowhere from `from` on.
size_t FindMark(std::string_view text, char letter, size_t from) {
  const std::string mark = {'(', letter, ')'};
  for (size_t place = text.find(mark, from); place != std::string_view::npos;
       place = text.find(mark, place + 1)) {
    const size_t before = text.substr(0, place).find_last_not_of(' ');
    if (before == std::string_view::npos || text[before] == '\n') return place;
  }
  return std::string_view::npos;
}

// Takes the options off the beginning of `rest`; the article is left.
absl::Status TakeOptions(std::string_view& rest, std::array<std::string, 4>& options) {
  constexpr size_t kMark = 3;
  std::array<size_t, 5> places = {};
  for (size_t i = 0; i < options.size(); ++i) {
    const char letter = static_cast<char>('A' + i);
    places[i] = FindMark(rest, letter, i == 0 ? 0 : places[i - 1] + kMark);
    if (places[i] == std::string_view::npos) {
      return MemberError("input", std::string("an option (") + letter +
                                      ") at the beginning of a line behind the question");
    }
  }
  places[4] = std::min(rest.find(kBlankLine, places[3]), rest.size());
  for (size_t i = 0; i < options.size(); ++i) {
    const size_t begin = places[i] + kMark;
    options[i] = WithSingleSpaces(rest.substr(begin, places[i + 1] - begin));
  }
  rest.remove_prefix(std::min(places[4] + kBlankLine.size(), rest.size()));
  return absl::OkStatus();
}

absl::StatusOr<ContractExample> ReadContract(const json& object) {
  ContractExample example;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string input, StringMember(object, "input"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto parts, SplitInput(input));
  example.hypothesis = parts.first;
  example.contract = parts.second;
  HIPPODROME_ASSIGN_OR_RETURN(example.label, StringMember(object, "output"));
  return example;
}

absl::StatusOr<QualityQuestion> ReadQualityQuestion(const json& object) {
  QualityQuestion question;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string input, StringMember(object, "input"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto parts, SplitInput(input));
  question.question = parts.first;
  std::string_view rest = parts.second;
  HIPPODROME_RETURN_IF_ERROR(TakeOptions(rest, question.options));
  question.article = rest;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string output, StringMember(object, "output"));
  const auto* const gold =
      std::find(question.options.begin(), question.options.end(), WithSingleSpaces(output));
  if (gold == question.options.end()) {
    return InvalidArgument("output: '" + OneLine(output) + "' is none of the options");
  }
  question.gold = static_cast<size_t>(gold - question.options.begin());
  ObjectReader reader(object, "");
  question.hard = reader.Boolean("is_hard", false);
  if (!reader.status().ok()) return reader.status();
  return question;
}

}  // namespace

absl::StatusOr<std::vector<ContractExample>> ReadContractNli(std::string_view text) {
  return ReadJsonLines<ContractExample>(text, "examples", ReadContract);
}

absl::StatusOr<std::vector<QualityQuestion>> ReadQuality(std::string_view text) {
  return ReadJsonLines<QualityQuestion>(text, "examples", ReadQualityQuestion);
}

}  // namespace hippodrome
