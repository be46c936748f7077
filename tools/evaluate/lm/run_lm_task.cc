#include "tools/evaluate/lm/run_lm_task.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/evaluate/metrics.h"
#include "tools/evaluate/python_text.h"

namespace hippodrome {
namespace {

using ChoiceScores = std::vector<ContinuationScore>;

absl::Status InQuestion(const LmQuestion& question, const std::string& what,
                        const absl::Status& status) {
  return {status.code(),
          "line " + std::to_string(question.line) + ": " + what + ": " + Message(status)};
}

// Asks some questions.
class Asker {
 public:
  Asker(DecoderSession& session, const LmTask& task, const LmLengths& lengths)
      : session_(session), task_(task), lengths_(lengths) {}

  absl::StatusOr<std::vector<LmAnswer>> Ask(std::span<const LmQuestion> questions) const {
    return task_.kind == LmTaskKind::kGeneration ? Write(questions) : Score(questions);
  }

 private:
  absl::StatusOr<std::vector<LmAnswer>> Score(std::span<const LmQuestion> questions) const;
  absl::StatusOr<std::vector<LmAnswer>> Write(std::span<const LmQuestion> questions) const;
  // In tokens, checked.
  absl::StatusOr<std::vector<Continuation>> Tokens(const LmQuestion& question) const;
  absl::StatusOr<std::vector<Continuation>> RollingTokens(const std::string& text) const;
  absl::StatusOr<std::vector<int32_t>> PromptTokens(const std::string& prompt) const;

  LmAnswer AnswerOf(const LmQuestion& question, const ChoiceScores& scores) const;
  void ChooseAnswer(const LmQuestion& question, const ChoiceScores& scores, LmAnswer& answer) const;
  LmAnswer AnswerOf(const LmQuestion& question, const std::string& text) const;
  // Sets a metric that the task has.
  void Set(LmOutcome& outcome, const std::string& metric, bool right) const {
    if (std::ranges::find(task_.metrics, metric) == task_.metrics.end()) return;
    outcome.means[metric] = right ? 1 : 0;
  }

  DecoderSession& session_;
  const LmTask& task_;
  const LmLengths& lengths_;
};

absl::StatusOr<std::vector<Continuation>> Asker::RollingTokens(const std::string& text) const {
  const int64_t end_of_text = session_.config().eos_token_id;
  if (session_.tokenizer() == nullptr || end_of_text < 0) {
    return FailedPrecondition("the model needs a tokenizer, and a token for the end of a text");
  }
  const std::vector<int32_t> ids = session_.tokenizer()->Encode(text);
  if (ids.empty()) return InvalidArgument("there is no text");
  RollingWindows windows;
  if (lengths_.most > 0) {
    windows.window = lengths_.most - 1;
    windows.stride = lengths_.stride == 0 ? windows.window : lengths_.stride;
  }
  return RollingContinuations(ids, static_cast<int32_t>(end_of_text), windows);
}

absl::StatusOr<std::vector<Continuation>> Asker::Tokens(const LmQuestion& question) const {
  std::vector<Continuation> all;
  Joiner joiner = session_.NewJoiner();
  if (task_.kind == LmTaskKind::kRolling) {
    auto parts = RollingTokens(question.scored.front().continuation);
    if (!parts.ok()) return InQuestion(question, "\"text\" of the task", parts.status());
    all = *std::move(parts);
  }
  for (const TextContinuation& scored : question.scored) {
    if (task_.kind == LmTaskKind::kRolling) break;
    const std::string what = "continuation " + std::to_string(all.size());
    auto joined = joiner.Join(scored.context, scored.continuation);
    if (!joined.ok()) return InQuestion(question, what, joined.status());
    all.push_back(lengths_.most == 0 ? *std::move(joined)
                                     : CutContext(*std::move(joined), lengths_.most));
  }
  for (const Continuation& continuation : all) {
    const absl::Status status = session_.Check(continuation);
    if (!status.ok()) return InQuestion(question, "what the model reads", status);
  }
  return all;
}

absl::StatusOr<std::vector<LmAnswer>> Asker::Score(std::span<const LmQuestion> questions) const {
  std::vector<std::vector<Continuation>> continuations;
  for (const LmQuestion& question : questions) {
    HIPPODROME_ASSIGN_OR_RETURN(auto tokens, Tokens(question));
    continuations.push_back(std::move(tokens));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto scores, session_.Score(continuations));
  std::vector<LmAnswer> answers;
  for (size_t i = 0; i < questions.size(); ++i) {
    answers.push_back(AnswerOf(questions[i], scores[i]));
  }
  return answers;
}

// The place of the largest value, the first among equals.
template <typename ValueOf>
int64_t BestBy(size_t count, const ValueOf& value_of) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i) {
    if (value_of(i) > value_of(best)) best = i;
  }
  return static_cast<int64_t>(best);
}

void Asker::ChooseAnswer(const LmQuestion& question, const ChoiceScores& scores,
                         LmAnswer& answer) const {
  const size_t count = question.choices.size();
  const auto sum = [&](size_t i) { return scores[i].log_probability; };
  const auto best_per = [&](const auto& units) {
    return BestBy(count, [&](size_t i) {
      const double unit = static_cast<double>(units(i));
      return unit == 0 ? -std::numeric_limits<double>::infinity() : sum(i) / unit;
    });
  };
  LmOutcome& outcome = answer.outcome;
  outcome.best = BestBy(count, sum);
  outcome.gold = question.gold;
  outcome.choices = static_cast<int64_t>(count);
  Set(outcome, "acc", outcome.best == question.gold);
  Set(outcome, "acc_norm", question.gold == best_per([&](size_t i) {
                             return ToCodePoints(question.choices[i]).size();
                           }));
  Set(outcome, "acc_bytes",
      question.gold == best_per([&](size_t i) { return question.choices[i].size(); }));
  Set(outcome, "acc_tokens", question.gold == best_per([&](size_t i) { return scores[i].tokens; }));
  if (scores.size() == 2 * count) {
    Set(outcome, "acc_mutual_info",
        question.gold == BestBy(count, [&](size_t i) { return sum(i) - sum(count + i); }));
  }
  answer.record["best"] = outcome.best;
  if (question.answers.empty()) {
    answer.record["gold"] = question.gold;
    return;
  }
  // Each by itself: an answer of articles alone counts.
  double& exact = outcome.means["em"];
  double& f1 = outcome.means["f1"];
  for (const std::string& right : question.answers) {
    const AnswerScore score = ScoreAnswer(question.names[static_cast<size_t>(outcome.best)],
                                          std::span(&right, 1), SquadVersion::k2);
    exact = std::max(exact, score.exact);
    f1 = std::max(f1, score.f1);
  }
}

LmAnswer Asker::AnswerOf(const LmQuestion& question, const ChoiceScores& scores) const {
  LmAnswer answer;
  LmOutcome& outcome = answer.outcome;
  outcome.group = question.group;
  outcome.words = question.words;
  outcome.bytes = question.bytes;
  bool greedy = true;
  for (const ContinuationScore& score : scores) {
    outcome.log_probability += score.log_probability;
    outcome.tokens += score.tokens;
    greedy = greedy && score.greedy;
    answer.record["log_probabilities"].push_back(score.log_probability);
    answer.record["tokens"].push_back(score.tokens);
    answer.record["greedy"].push_back(score.greedy);
  }
  if (task_.kind == LmTaskKind::kChoices) ChooseAnswer(question, scores, answer);
  if (task_.kind == LmTaskKind::kContinuation) Set(outcome, "acc", greedy);
  return answer;
}

absl::StatusOr<std::vector<int32_t>> Asker::PromptTokens(const std::string& prompt) const {
  if (session_.tokenizer() == nullptr) {
    return FailedPrecondition("the model has no tokenizer for its text");
  }
  std::vector<int32_t> ids = session_.tokenizer()->Encode(prompt);
  if (ids.empty() && session_.config().eos_token_id >= 0) {
    ids.push_back(static_cast<int32_t>(session_.config().eos_token_id));
  }
  if (ids.empty()) return InvalidArgument("it is empty");
  if (lengths_.most > 0) {
    const int64_t room = std::max<int64_t>(1, lengths_.most - task_.max_tokens);
    ids.erase(ids.begin(), ids.end() - std::min(room, std::ssize(ids)));
  }
  return ids;
}

absl::StatusOr<std::vector<LmAnswer>> Asker::Write(std::span<const LmQuestion> questions) const {
  std::vector<std::vector<int32_t>> prompts;
  for (const LmQuestion& question : questions) {
    auto ids = PromptTokens(question.prompt);
    if (!ids.ok()) return InQuestion(question, "the prompt", ids.status());
    prompts.push_back(*std::move(ids));
  }
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto texts,
      session_.Write(prompts, {.until = task_.until, .max_tokens = task_.max_tokens}));
  std::vector<LmAnswer> answers;
  for (size_t i = 0; i < questions.size(); ++i) {
    answers.push_back(AnswerOf(questions[i], texts[i]));
  }
  return answers;
}

// What of a text is compared: no space around it, and what the task leaves.
std::u32string Compared(const LmTask& task, const std::string& text) {
  std::u32string compared = ToCodePoints(text);
  if (task.ignore_case) compared = PythonLower(compared);
  if (task.ignore_punctuation) std::erase_if(compared, IsAsciiPunctuation);
  return std::u32string(PythonTrim(compared));
}

LmAnswer Asker::AnswerOf(const LmQuestion& question, const std::string& text) const {
  const std::u32string written = Compared(task_, text);
  LmAnswer answer;
  answer.outcome.group = question.group;
  Set(answer.outcome, "exact_match",
      std::ranges::any_of(question.answers, [&](const std::string& right) {
        return Compared(task_, right) == written;
      }));
  answer.record["text"] = text;
  return answer;
}

}  // namespace

absl::Status RunLmTask(DecoderSession& session, const LmTask& task,
                       std::span<const LmQuestion> questions, const LmLengths& lengths,
                       const LmAnswerSink& sink) {
  // Enough to keep all sequences busy, few enough that answers come as they are made.
  constexpr size_t kTogether = 2 * DecoderSession::kSequences;
  const Asker asker(session, task, lengths);
  while (!questions.empty()) {
    size_t count = 0;
    for (size_t sequences = 0; count < questions.size() && sequences < kTogether; ++count) {
      sequences += std::max<size_t>(1, questions[count].scored.size());
    }
    HIPPODROME_ASSIGN_OR_RETURN(const auto answers, asker.Ask(questions.first(count)));
    HIPPODROME_RETURN_IF_ERROR(sink(answers));
    questions = questions.subspan(count);
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
