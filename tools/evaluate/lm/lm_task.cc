#include "tools/evaluate/lm/lm_task.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "engine/base/json_object.h"
#include "engine/base/status.h"
#include "tools/command_line/strict_reader.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/lm/lm_figures.h"

namespace hippodrome {
namespace {

using nlohmann::json;

constexpr std::pair<std::string_view, LmTaskKind> kKinds[] = {
    {"choices", LmTaskKind::kChoices},
    {"continuation", LmTaskKind::kContinuation},
    {"rolling", LmTaskKind::kRolling},
    {"generation", LmTaskKind::kGeneration},
};

constexpr std::pair<std::string_view, DocumentForm> kForms[] = {
    {"json", DocumentForm::kJson},
    {"text", DocumentForm::kText},
    {"wikitext", DocumentForm::kWikiText},
};

template <typename Words>
auto ReadWord(StrictReader& reader, const char* name, const std::string& fallback,
              const Words& words) {
  const std::string word = reader.Text(name, fallback);
  std::string known;
  for (const auto& [text, value] : words) {
    if (text == word) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  reader.Reject(name, "one of " + known);
  return words[0].second;
}

json ReadExpression(StrictReader& reader, const char* name) {
  const json* value = reader.Find(name);
  return value == nullptr ? json() : *value;
}

// [["name", EXPRESSION], ..]
std::vector<std::pair<std::string, json>> ReadMembers(StrictReader& reader, const char* name) {
  const json* list = reader.Find(name);
  std::vector<std::pair<std::string, json>> members;
  if (list == nullptr) return members;
  const bool pairs = list->is_array() && std::all_of(list->begin(), list->end(), [](const json& m) {
                       return m.is_array() && m.size() == 2 && m[0].is_string();
                     });
  if (!pairs) {
    reader.Reject(name, "a list of [NAME, EXPRESSION]");
    return members;
  }
  for (const json& member : *list) members.emplace_back(member[0].get<std::string>(), member[1]);
  return members;
}

// What `kind` needs, and nothing that it does not know.
void CheckMembers(StrictReader& reader, const LmTask& task) {
  struct Member {
    const char* name;
    const json& value;
    bool needed;
    bool known;
  };
  const bool choices = task.kind == LmTaskKind::kChoices;
  const bool rolling = task.kind == LmTaskKind::kRolling;
  const bool generation = task.kind == LmTaskKind::kGeneration;
  const bool continuation = task.kind == LmTaskKind::kContinuation;
  const bool several = choices && !task.contexts.is_null();
  const Member members[] = {
      {"context", task.context, !rolling && !several, !rolling && !several},
      {"contexts", task.contexts, false, choices},
      {"continuation", task.continuation, continuation || several, continuation || several},
      {"choices", task.choices, choices, choices},
      {"gold", task.gold, choices && task.answers.is_null(), choices},
      {"answers", task.answers, generation, choices || generation},
      {"names", task.names, false, choices && !task.answers.is_null()},
      {"target", task.target, false, choices},
      {"text", task.text, rolling, rolling},
      {"counted", task.counted, false, rolling},
  };
  for (const Member& member : members) {
    if (member.needed && member.value.is_null()) reader.Reject(member.name, "an expression");
    if (!member.known && !member.value.is_null()) {
      reader.Reject(member.name, "nothing with the other members of this task");
    }
  }
}

// Those that every task of the kind has, and that cost nothing.
std::vector<std::string> DefaultMetrics(LmTaskKind kind) {
  if (kind == LmTaskKind::kChoices) return {"acc", "acc_norm", "acc_bytes", "acc_tokens"};
  return LmMetrics(kind);
}

void CheckMetrics(StrictReader& reader, const LmTask& task) {
  const std::vector<std::string>& known = LmMetrics(task.kind);
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  for (const std::string& metric : task.metrics) {
    if (std::find(known.begin(), known.end(), metric) == known.end()) {
      reader.Reject("metrics", "of " + names);
    }
  }
}

absl::StatusOr<LmTask> ReadTask(const json& object) {
  StrictReader reader(object, "");
  LmTask task;
  task.name = reader.Text("name", "");
  if (task.name.empty()) reader.Reject("name", "a name");
  task.title = reader.Text("title", "");
  task.kind = ReadWord(reader, "kind", "", kKinds);
  task.form = ReadWord(reader, "form", "json", kForms);
  task.data = reader.Texts("data").value_or(std::vector<std::string>());
  task.examples = reader.Texts("examples").value_or(std::vector<std::string>());
  task.spare_example = reader.Boolean("spare_example", false);
  task.unfold = ReadMembers(reader, "unfold");
  task.let = ReadMembers(reader, "let");
  task.by = ReadExpression(reader, "by");
  task.delimiter = reader.Text("delimiter", " ");
  task.context = ReadExpression(reader, "context");
  task.contexts = ReadExpression(reader, "contexts");
  task.choices = ReadExpression(reader, "choices");
  task.continuation = ReadExpression(reader, "continuation");
  task.gold = ReadExpression(reader, "gold");
  task.answers = ReadExpression(reader, "answers");
  task.names = ReadExpression(reader, "names");
  task.target = ReadExpression(reader, "target");
  task.text = ReadExpression(reader, "text");
  task.counted = ReadExpression(reader, "counted");
  CheckMembers(reader, task);
  task.metrics = reader.Texts("metrics").value_or(DefaultMetrics(task.kind));
  CheckMetrics(reader, task);
  if (task.kind == LmTaskKind::kGeneration) {
    task.until = reader.Texts("until").value_or(std::vector<std::string>());
    task.max_tokens = reader.Integer("max_tokens", {1, 1 << 20}, 256);
    task.ignore_case = reader.Boolean("ignore_case", false);
    task.ignore_punctuation = reader.Boolean("ignore_punctuation", false);
  }
  HIPPODROME_RETURN_IF_ERROR(reader.Finish());
  return task;
}

}  // namespace

absl::StatusOr<LmTask> ParseLmTask(const std::string& json_text) {
  HIPPODROME_ASSIGN_OR_RETURN(const json object, ParseJsonObject(json_text));
  return ReadTask(object);
}

absl::StatusOr<LmTask> FindLmTask(const std::string& task) {
  for (const auto& [name, text] : BuiltInLmTasks()) {
    if (name == task) return ParseLmTask(std::string(text));
  }
  if (!task.ends_with(".json") && !std::filesystem::exists(task)) {
    return absl::NotFoundError("there is no task \"" + task +
                               "\": 'hippodrome eval lm --list' says which there are; a file of "
                               "one's own ends in .json");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(task));
  absl::StatusOr<LmTask> parsed = ParseLmTask(text);
  if (!parsed.ok()) return InFile(task, parsed.status());
  return parsed;
}

}  // namespace hippodrome
