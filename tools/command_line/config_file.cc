#include "tools/command_line/config_file.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/text_file.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

constexpr char kConfig[] = "config";
// They ask for something else than a run.
constexpr char kVersion[] = "version";

absl::Status WrongMember(const std::string& path, const std::string& name,
                         const std::string& what) {
  return Usage(path + ": \"" + OneLine(name) + "\" " + what);
}

// The library keeps the last of two members with one name.
absl::StatusOr<Json> ParseOnce(const std::string& path, const std::string& text) {
  std::set<std::string> seen;
  std::string twice;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key || depth != 1) return true;
    const auto& name = parsed.get_ref<const std::string&>();
    if (!seen.insert(name).second) twice = name;
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    return Usage(path + ": not valid JSON, near byte " + std::to_string(error.byte));
  }
  if (!json.is_object()) return Usage(path + ": expected a JSON object with names of options");
  if (!twice.empty()) return WrongMember(path, twice, "is there twice");
  return json;
}

// As it would stand on the command line.
absl::StatusOr<std::string> ValueText(const std::string& path, const Option& option,
                                      const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  return WrongMember(path, option.name,
                     "is " + OneLine(value.dump()) + ", expected " +
                         (option.repeatable ? "strings or numbers" : "a string or a number"));
}

absl::StatusOr<std::vector<std::string>> ValueTexts(const std::string& path, const Option& option,
                                                    const Json& value) {
  std::vector<std::string> texts;
  if (option.value.empty()) {
    if (!value.is_boolean()) {
      return WrongMember(path, option.name,
                         "is " + OneLine(value.dump()) + ", expected true or false");
    }
    if (value.get<bool>()) texts.emplace_back();
    return texts;
  }
  if (!value.is_array() || !option.repeatable) {
    HIPPODROME_ASSIGN_OR_RETURN(texts.emplace_back(), ValueText(path, option, value));
    return texts;
  }
  for (const Json& element : value) {
    HIPPODROME_ASSIGN_OR_RETURN(texts.emplace_back(), ValueText(path, option, element));
  }
  return texts;
}

}  // namespace

Option ConfigOption() {
  return {kConfig, "FILE",
          "a JSON file with the names of these options and their values, arrays for those that may "
          "be repeated; what is given here comes before it"};
}

absl::StatusOr<std::map<std::string, std::vector<std::string>>> ReadConfigFile(
    const std::string& path, const std::map<std::string, Option>& options) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseOnce(path, text));
  std::map<std::string, std::vector<std::string>> values;
  for (const auto& [name, value] : json.items()) {
    const auto option = options.find(name);
    if (option == options.end() || name == kConfig || name == kVersion) {
      return WrongMember(path, name, "is no option that a file may have");
    }
    HIPPODROME_ASSIGN_OR_RETURN(std::vector<std::string> texts,
                                ValueTexts(path, option->second, value));
    if (!texts.empty()) values.emplace(name, std::move(texts));
  }
  return values;
}

}  // namespace hippodrome
