#include "tools/evaluate/lm/expression.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/base/status.h"
#include "tools/evaluate/python_text.h"

namespace hippodrome {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

std::string Shown(const json& value) {
  constexpr size_t kMost = 60;
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "..";
}

absl::Status WrongValue(const std::string& what, const json& value) {
  return InvalidArgument(Shown(value) + ": expected " + what);
}

// A member by its path, "a.0.b"; "*" is all elements.
absl::StatusOr<json> Find(const json& value, std::string_view path, std::string_view whole) {
  if (path.empty()) return value;
  const size_t dot = std::min(path.find('.'), path.size());
  const std::string name(path.substr(0, dot));
  const std::string_view rest = path.substr(std::min(dot + 1, path.size()));
  const absl::Status missing =
      absl::NotFoundError("the document has no \"" + std::string(whole) + "\"");
  if (value.is_object()) {
    const auto member = value.find(name);
    return member == value.end() ? absl::StatusOr<json>(missing) : Find(*member, rest, whole);
  }
  if (!value.is_array()) return missing;
  if (name == "*") {
    json all = json::array();
    for (const json& element : value) {
      HIPPODROME_ASSIGN_OR_RETURN(json found, Find(element, rest, whole));
      all.push_back(std::move(found));
    }
    return all;
  }
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size() || index >= value.size()) {
    return missing;
  }
  return Find(value[index], rest, whole);
}

absl::StatusOr<std::string> Written(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_boolean()) return value.dump();
  return WrongValue("a text, an integer, true or false", value);
}

// "Q: {question}". What is one place alone is what is there.
absl::StatusOr<json> Fill(const std::string& form, const Document& document) {
  std::string text;
  for (size_t i = 0; i < form.size();) {
    const char c = form[i];
    if ((c == '{' || c == '}') && form.substr(i + 1, 1) == std::string(1, c)) {
      text += c;
      i += 2;
    } else if (c == '{') {
      const size_t end = form.find('}', i);
      if (end == std::string::npos) return WrongValue("a \"}\" for each \"{\"", form);
      const std::string path = form.substr(i + 1, end - i - 1);
      HIPPODROME_ASSIGN_OR_RETURN(json found, Find(document, path, path));
      if (i == 0 && end + 1 == form.size()) return found;
      HIPPODROME_ASSIGN_OR_RETURN(const std::string written, Written(found));
      text += written;
      i = end + 1;
    } else if (c == '}') {
      return WrongValue("\"}}\" where no \"{\" is open", form);
    } else {
      text += c;
      ++i;
    }
  }
  return json(text);
}

absl::StatusOr<Texts> TextsOf(const json& value) {
  if (!value.is_array()) return WrongValue("a list", value);
  Texts texts;
  for (const json& element : value) {
    HIPPODROME_ASSIGN_OR_RETURN(std::string text, Written(element));
    texts.push_back(std::move(text));
  }
  return texts;
}

absl::StatusOr<int64_t> IntegerOf(const json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  }
  return WrongValue("an integer", value);
}

// Steps by the number of their arguments.

absl::StatusOr<json> TextStep(const std::string& name, const std::string& text) {
  const std::u32string characters = ToCodePoints(text);
  if (name == "trim") return json(ToUtf8(PythonTrim(characters)));
  if (name == "lower") return json(ToUtf8(PythonLower(characters)));
  if (name == "capitalize") return json(ToUtf8(PythonCapitalize(characters)));
  const std::u32string_view all = characters;
  if (name == "lower_first")
    return json(ToUtf8(PythonLower(all.substr(0, 1)) + characters.substr(all.empty() ? 0 : 1)));
  if (name == "drop_last") return json(ToUtf8(all.substr(0, all.size() - !all.empty())));
  if (name == "words") {
    json words = json::array();
    for (const std::u32string& word : PythonWords(characters)) words.push_back(ToUtf8(word));
    return words;
  }
  return InvalidArgument("there is no step \"" + name + "\" for a text");
}

absl::StatusOr<json> ListStep(const std::string& name, const json& list) {
  if (name == "sort_unique") {
    HIPPODROME_ASSIGN_OR_RETURN(Texts texts, TextsOf(list));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    return json(texts);
  }
  if (list.empty()) return WrongValue("a list that is not empty for \"" + name + "\"", list);
  if (name == "first") return list.front();
  if (name == "last") return list.back();
  if (name == "but_first") return json(json::array_t(list.begin() + 1, list.end()));
  if (name == "but_last") return json(json::array_t(list.begin(), list.end() - 1));
  return InvalidArgument("there is no step \"" + name + "\" for a list");
}

absl::StatusOr<json> Regex(const std::string& text, const std::string& pattern,
                           const std::string& rewrite) {
  const RE2 expression(pattern, RE2::Quiet);
  std::string error;
  if (!expression.ok()) return InvalidArgument("\"" + pattern + "\": " + expression.error());
  if (!expression.CheckRewriteString(rewrite, &error)) {
    return InvalidArgument("\"" + rewrite + "\": " + error);
  }
  std::string result = text;
  RE2::GlobalReplace(&result, expression, rewrite);
  return json(result);
}

// The characters [from, to), cut at the ends of the text.
std::string Characters(const std::u32string& text, int64_t from, int64_t to) {
  const int64_t size = std::ssize(text);
  from = std::clamp<int64_t>(from, 0, size);
  to = std::clamp<int64_t>(to, from, size);
  return ToUtf8(std::u32string_view(text).substr(from, to - from));
}

absl::StatusOr<json> Around(const std::string& name, const std::string& text,
                            const std::string& place) {
  const size_t found = text.find(place);
  if (found == std::string::npos) {
    return WrongValue("a text with \"" + place + "\" in it for \"" + name + "\"", text);
  }
  return json(name == "before" ? text.substr(0, found) : text.substr(found + place.size()));
}

absl::StatusOr<json> TextStep(const std::string& name, const std::string& text,
                              std::span<const json> arguments) {
  if (name == "slice" || name == "slice_through") {
    HIPPODROME_ASSIGN_OR_RETURN(const int64_t from, IntegerOf(arguments[0]));
    HIPPODROME_ASSIGN_OR_RETURN(const int64_t to, IntegerOf(arguments[1]));
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const int64_t end = std::clamp<int64_t>(to, -1, kMost);
    return json(Characters(ToCodePoints(text), from, name == "slice" ? end : end + 1));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const Texts texts, TextsOf(json(arguments)));
  if (name == "skip") {
    const std::u32string characters = ToCodePoints(text);
    return json(Characters(characters, std::ssize(ToCodePoints(texts[0])), std::ssize(characters)));
  }
  if (name == "replace") return json(absl::StrReplaceAll(text, {{texts[0], texts[1]}}));
  if (name == "regex") return Regex(text, texts[0], texts[1]);
  if (name == "split") return json(Texts(absl::StrSplit(text, texts[0])));
  return Around(name, text, texts[0]);
}

absl::StatusOr<json> Each(const json& list, const json& expression, Document document) {
  json results = json::array();
  for (const json& item : list) {
    document["item"] = item;
    HIPPODROME_ASSIGN_OR_RETURN(json result, Evaluate(expression, document));
    results.push_back(std::move(result));
  }
  return results;
}

absl::StatusOr<json> Join(const json& list, const json& separator) {
  HIPPODROME_ASSIGN_OR_RETURN(const Texts texts, TextsOf(list));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string between, Written(separator));
  std::string joined;
  for (size_t i = 0; i < texts.size(); ++i) joined += (i == 0 ? "" : between) + texts[i];
  return json(joined);
}

absl::StatusOr<json> Take(const json& list, const json& count) {
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t wanted, IntegerOf(count));
  const int64_t taken = std::clamp<int64_t>(wanted, 0, std::ssize(list));
  return json(json::array_t(list.begin(), list.begin() + taken));
}

absl::StatusOr<json> Map(const json& value, const json& table) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string key, Written(value));
  if (!table.is_object()) return WrongValue("an object for \"map\"", table);
  const auto found = table.find(key);
  if (found != table.end()) return *found;
  Texts known;
  for (const auto& [name, mapped] : table.items()) known.push_back(name);
  return WrongValue("one of " + json(known).dump(), value);
}

absl::StatusOr<json> IndexIn(const json& value, const json& list) {
  if (!list.is_array()) return WrongValue("a list for \"index_in\"", list);
  const auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) return WrongValue("one of " + Shown(list), value);
  return json(found - list.begin());
}

// How many arguments a step has; nothing: there is no such step.
std::optional<size_t> ArgumentsOf(const std::string& step) {
  static constexpr std::string_view kNone[] = {
      "trim",  "lower", "capitalize", "lower_first", "drop_last",   "words",
      "first", "last",  "but_first",  "but_last",    "sort_unique",
  };
  static constexpr std::string_view kOne[] = {"before", "after", "skip", "split",   "take",
                                              "each",   "join",  "map",  "index_in"};
  static constexpr std::string_view kTwo[] = {"replace", "regex", "slice", "slice_through"};
  const auto is = [&](const auto& names) {
    return std::ranges::find(names, step) != std::end(names);
  };
  if (is(kNone)) return 0;
  if (is(kOne)) return 1;
  if (is(kTwo)) return 2;
  return std::nullopt;
}

absl::StatusOr<json> Apply(const std::string& name, const json& value,
                           std::span<const json> arguments) {
  if (name == "map") return Map(value, arguments[0]);
  if (name == "index_in") return IndexIn(value, arguments[0]);
  if (value.is_array()) {
    if (name == "join") return Join(value, arguments[0]);
    if (name == "take") return Take(value, arguments[0]);
    if (arguments.empty()) return ListStep(name, value);
    return InvalidArgument("there is no step \"" + name + "\" for a list");
  }
  if (name == "join" || name == "take") return WrongValue("a list for \"" + name + "\"", value);
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, Written(value));
  return arguments.empty() ? TextStep(name, text) : TextStep(name, text, arguments);
}

absl::StatusOr<json> Step(const json& step, const json& value, const Document& document) {
  const json form = step.is_array() ? step : json::array({step});
  if (form.empty() || !form.front().is_string()) return WrongValue("a step", step);
  const std::string name = form.front().get<std::string>();
  const std::optional<size_t> count = ArgumentsOf(name);
  if (!count) return WrongValue("a step", step);
  if (form.size() != 1 + *count) {
    return WrongValue("\"" + name + "\" and " + std::to_string(*count) + " more", step);
  }
  if (name == "each") {
    if (!value.is_array()) return WrongValue("a list for \"each\"", value);
    return Each(value, form[1], document);
  }
  std::vector<json> arguments;
  for (size_t i = 1; i < form.size(); ++i) {
    const bool table = form[i].is_object() && name == "map";
    HIPPODROME_ASSIGN_OR_RETURN(
        json argument, table ? absl::StatusOr<json>(form[i]) : Evaluate(form[i], document));
    arguments.push_back(std::move(argument));
  }
  return Apply(name, value, arguments);
}

absl::StatusOr<json> EvaluateSteps(const json& expression, const Document& document) {
  HIPPODROME_ASSIGN_OR_RETURN(json value, Evaluate(expression.at("of"), document));
  const json& steps = expression.at("do");
  if (!steps.is_array()) return WrongValue("a list of steps", steps);
  for (const json& step : steps) {
    HIPPODROME_ASSIGN_OR_RETURN(value, Step(step, value, document));
  }
  return value;
}

absl::StatusOr<json> EvaluateList(const json& expressions, const Document& document) {
  json values = json::array();
  for (const json& expression : expressions) {
    HIPPODROME_ASSIGN_OR_RETURN(json value, Evaluate(expression, document));
    values.push_back(std::move(value));
  }
  return values;
}

absl::StatusOr<json> EvaluateAny(const json& alternatives, const Document& document) {
  if (!alternatives.is_array() || alternatives.empty()) {
    return WrongValue("a list for \"any\"", alternatives);
  }
  absl::StatusOr<json> value;
  for (const json& alternative : alternatives) {
    value = Evaluate(alternative, document);
    if (!absl::IsNotFound(value.status())) break;
  }
  return value;
}

}  // namespace

absl::StatusOr<json> Evaluate(const json& expression, const Document& document) {
  if (expression.is_string()) return Fill(expression.get<std::string>(), document);
  if (expression.is_number_integer() || expression.is_boolean()) return expression;
  if (expression.is_array()) return EvaluateList(expression, document);
  if (expression.is_object() && expression.size() == 1 && expression.contains("any")) {
    return EvaluateAny(expression.at("any"), document);
  }
  if (expression.is_object() && expression.size() == 2 && expression.contains("of") &&
      expression.contains("do")) {
    return EvaluateSteps(expression, document);
  }
  return WrongValue("an expression", expression);
}

absl::StatusOr<std::string> EvaluateText(const json& expression, const Document& document) {
  HIPPODROME_ASSIGN_OR_RETURN(const json value, Evaluate(expression, document));
  return Written(value);
}

absl::StatusOr<Texts> EvaluateTexts(const json& expression, const Document& document) {
  HIPPODROME_ASSIGN_OR_RETURN(const json value, Evaluate(expression, document));
  return TextsOf(value);
}

absl::StatusOr<int64_t> EvaluateInteger(const json& expression, const Document& document) {
  HIPPODROME_ASSIGN_OR_RETURN(const json value, Evaluate(expression, document));
  return IntegerOf(value);
}

}  // namespace hippodrome
