#include "tools/evaluate/lm/lm_question.h"

#include <algorithm>
#include <utility>

#include "engine/base/status.h"
#include "tools/evaluate/python_text.h"

namespace hippodrome {
namespace {

using nlohmann::json;

absl::Status InMember(const NumberedDocument& document, const std::string& member,
                      const absl::Status& status) {
  return {status.code(), "line " + std::to_string(document.line) + ": \"" + member +
                             "\" of the task: " + Message(status)};
}

// Evaluates the members of one task for one document.
class Members {
 public:
  explicit Members(const NumberedDocument& document) : document_(document) {}

  absl::StatusOr<std::string> Text(const char* name, const json& expression) const {
    return Named(name, EvaluateText(expression, document_.document));
  }
  absl::StatusOr<std::vector<std::string>> Texts(const char* name, const json& expression) const {
    return Named(name, EvaluateTexts(expression, document_.document));
  }
  absl::StatusOr<int64_t> Integer(const char* name, const json& expression) const {
    return Named(name, EvaluateInteger(expression, document_.document));
  }
  absl::Status Error(const char* name, const std::string& what) const {
    return InMember(document_, name, InvalidArgument(what));
  }

 private:
  template <typename Value>
  absl::StatusOr<Value> Named(const char* name, absl::StatusOr<Value> value) const {
    if (!value.ok()) return InMember(document_, name, value.status());
    return value;
  }

  const NumberedDocument& document_;
};

// A document for each element of the list, or the document itself where it has no such list.
absl::StatusOr<std::vector<NumberedDocument>> Unfold(const std::string& name,
                                                     const json& expression,
                                                     std::vector<NumberedDocument> documents) {
  std::vector<NumberedDocument> unfolded;
  for (NumberedDocument& document : documents) {
    const auto list = Evaluate(expression, document.document);
    if (absl::IsNotFound(list.status())) {
      unfolded.push_back(std::move(document));
      continue;
    }
    if (!list.ok()) return InMember(document, "unfold", list.status());
    if (!list->is_array()) {
      return InMember(document, "unfold", InvalidArgument(name + " is of no list"));
    }
    for (const json& element : *list) {
      unfolded.push_back(document);
      unfolded.back().document[name] = element;
    }
  }
  return unfolded;
}

// The choices or contexts of a question, without what precedes them.
struct Options {
  std::vector<std::string> contexts;  // one for each continuation
  std::vector<std::string> continuations;
  std::vector<std::string> choices;
};

absl::StatusOr<Options> OptionsOf(const LmTask& task, const Members& members) {
  Options options;
  HIPPODROME_ASSIGN_OR_RETURN(options.choices, members.Texts("choices", task.choices));
  if (options.choices.empty()) return members.Error("choices", "there are none");
  const size_t count = options.choices.size();
  if (task.contexts.is_null()) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string context, members.Text("context", task.context));
    options.contexts.assign(count, context);
    options.continuations = options.choices;
    return options;
  }
  HIPPODROME_ASSIGN_OR_RETURN(options.contexts, members.Texts("contexts", task.contexts));
  if (options.contexts.size() != count) {
    return members.Error("contexts", "there are " + std::to_string(options.contexts.size()) +
                                         ", expected one for each of " + std::to_string(count) +
                                         " choices");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::string continuation,
                              members.Text("continuation", task.continuation));
  options.continuations.assign(count, continuation);
  return options;
}

absl::StatusOr<int64_t> ReadGold(const LmTask& task, const Members& members, size_t choices) {
  if (task.gold.is_null()) return 0;
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t gold, members.Integer("gold", task.gold));
  if (gold < 0 || gold >= static_cast<int64_t>(choices)) {
    return members.Error("gold", "it is " + std::to_string(gold) +
                                     ", expected the place of one of " + std::to_string(choices) +
                                     " choices");
  }
  return gold;
}

absl::Status AskChoices(const LmTask& task, const Members& members, const std::string& before,
                        LmQuestion& question) {
  HIPPODROME_ASSIGN_OR_RETURN(Options options, OptionsOf(task, members));
  const size_t count = options.choices.size();
  for (size_t i = 0; i < count; ++i) {
    question.scored.push_back(
        {before + options.contexts[i], task.delimiter + options.continuations[i]});
  }
  const bool against = std::ranges::find(task.metrics, "acc_mutual_info") != task.metrics.end();
  for (size_t i = 0; against && i < count; ++i) {
    question.scored.push_back({"", task.delimiter + options.continuations[i]});
  }
  HIPPODROME_ASSIGN_OR_RETURN(question.gold, ReadGold(task, members, count));
  question.choices = std::move(options.choices);
  if (task.answers.is_null()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(question.answers, members.Texts("answers", task.answers));
  question.names = question.choices;
  if (task.names.is_null()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(question.names, members.Texts("names", task.names));
  if (question.names.size() == count) return absl::OkStatus();
  return members.Error("names", "expected one for each choice");
}

// As Python's re.split(r"\s+", text): what stands before the first space and behind the last one
// counts, also where it is empty.
int64_t CountWords(const std::string& text) {
  const std::u32string characters = ToCodePoints(text);
  int64_t words = 1;
  bool space = false;
  for (const char32_t c : characters) {
    words += IsPythonSpace(c) && !space;
    space = IsPythonSpace(c);
  }
  return words;
}

absl::Status AskRolling(const LmTask& task, const Members& members, LmQuestion& question) {
  HIPPODROME_ASSIGN_OR_RETURN(std::string text, members.Text("text", task.text));
  std::string counted = text;
  if (!task.counted.is_null()) {
    HIPPODROME_ASSIGN_OR_RETURN(counted, members.Text("counted", task.counted));
  }
  question.words = CountWords(counted);
  question.bytes = std::ssize(counted);
  question.scored.push_back({"", std::move(text)});
  return absl::OkStatus();
}

absl::Status Ask(const LmTask& task, const Members& members, const std::string& before,
                 LmQuestion& question) {
  switch (task.kind) {
    case LmTaskKind::kChoices:
      return AskChoices(task, members, before, question);
    case LmTaskKind::kRolling:
      return AskRolling(task, members, question);
    case LmTaskKind::kContinuation:
    case LmTaskKind::kGeneration:
      break;
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::string context, members.Text("context", task.context));
  if (task.kind == LmTaskKind::kGeneration) {
    question.prompt = before + context;
    HIPPODROME_ASSIGN_OR_RETURN(question.answers, members.Texts("answers", task.answers));
    if (question.answers.empty()) return members.Error("answers", "there are none");
    return absl::OkStatus();
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::string continuation,
                              members.Text("continuation", task.continuation));
  question.scored.push_back({before + context, task.delimiter + continuation});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NumberedDocument>> PrepareDocuments(
    const LmTask& task, std::vector<NumberedDocument> documents) {
  for (const auto& [name, list] : task.unfold) {
    HIPPODROME_ASSIGN_OR_RETURN(documents, Unfold(name, list, std::move(documents)));
  }
  for (NumberedDocument& document : documents) {
    for (const auto& [name, expression] : task.let) {
      auto value = Evaluate(expression, document.document);
      if (!value.ok()) return InMember(document, name, value.status());
      document.document[name] = *std::move(value);
    }
  }
  return documents;
}

absl::StatusOr<std::string> ExampleText(const LmTask& task, const NumberedDocument& document) {
  const Members members(document);
  LmQuestion question;
  HIPPODROME_RETURN_IF_ERROR(Ask(task, members, "", question));
  if (task.kind == LmTaskKind::kGeneration) {
    return question.prompt + task.delimiter + question.answers.front();
  }
  if (!task.target.is_null()) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::string target, members.Text("target", task.target));
    return question.scored.front().context + task.delimiter + target;
  }
  const TextContinuation& right = question.scored[static_cast<size_t>(question.gold)];
  return right.context + right.continuation;
}

absl::StatusOr<LmQuestion> AskQuestion(const LmTask& task, const NumberedDocument& document,
                                       std::span<const std::string> examples) {
  const Members members(document);
  std::string before;
  for (const std::string& example : examples) before += example + "\n\n";
  LmQuestion question{.line = document.line};
  if (!task.by.is_null()) {
    HIPPODROME_ASSIGN_OR_RETURN(question.group, members.Text("by", task.by));
  }
  HIPPODROME_RETURN_IF_ERROR(Ask(task, members, before, question));
  return question;
}

}  // namespace hippodrome
