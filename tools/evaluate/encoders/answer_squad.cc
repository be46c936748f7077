#include "tools/evaluate/encoders/answer_squad.h"

#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/tasks/answer_spans.h"
#include "engine/tokenizer/code_points.h"

namespace hippodrome {
namespace {

// A window of a question's context, with its logits once it has run.
struct Window {
  EncodedText text;
  std::vector<float> start;
  std::vector<float> end;
};

struct Question {
  const SquadQuestion* gold = nullptr;
  const std::string* context = nullptr;
  size_t first_window = 0;
  size_t windows = 0;
};

// All questions and their windows, in the order of the file.
struct Work {
  std::vector<Question> questions;
  std::vector<Window> windows;
  int64_t too_long = 0;
};

void AddQuestion(const EncoderSession& session, const SquadQuestion& gold,
                 const std::string& context, std::span<const WordPiece> pieces, Work& work) {
  const std::vector<WordPiece> question = session.tokenizer().Tokenize(gold.question);
  auto texts = QuestionWindows(session.tokenizer(), question, pieces, session.max_tokens());
  work.too_long += !texts.ok();
  if (!texts.ok()) texts.emplace();
  work.questions.push_back({&gold, &context, work.windows.size(), texts->size()});
  for (EncodedText& text : *texts) work.windows.push_back({.text = std::move(text)});
}

Work PlanWork(const EncoderSession& session, const SquadFile& file) {
  Work work;
  for (const SquadParagraph& paragraph : file.paragraphs) {
    const std::vector<WordPiece> pieces = session.tokenizer().Tokenize(paragraph.context);
    for (const SquadQuestion& question : paragraph.questions) {
      AddQuestion(session, question, paragraph.context, pieces, work);
    }
  }
  return work;
}

absl::Status RunWindows(EncoderSession& session, std::vector<Window>& windows) {
  std::vector<EncoderRequest> requests;
  for (const Window& window : windows) {
    std::vector<int32_t> rows(window.text.ids.size());
    std::iota(rows.begin(), rows.end(), 0);
    requests.push_back(
        {.ids = window.text.ids, .types = window.text.types, .rows = std::move(rows)});
  }
  return session.Run("eval squad", requests, [&](size_t index, const EncoderOutput& output) {
    for (int64_t row = 0; row < output.rows; ++row) {
      windows[index].start.push_back(output.values[row * output.cols]);
      windows[index].end.push_back(output.values[row * output.cols + 1]);
    }
  });
}

SquadPrediction Predict(const Question& question, std::span<const Window> windows,
                        SquadVersion version) {
  std::vector<WindowScores> scores;
  for (const Window& window : windows.subspan(question.first_window, question.windows)) {
    scores.push_back({&window.text, window.start, window.end});
  }
  const auto text = [&](const AnswerSpan& span) {
    return std::string(SliceCodePoints(*question.context, span.begin, span.end));
  };
  if (version == SquadVersion::k1) {
    const std::vector<AnswerSpan> best = BestAnswers(scores, {});
    return {.answer = best.empty() ? "" : text(best[0])};
  }
  // No answer always comes first, so that its logit and that of the best span are both there.
  const std::vector<AnswerSpan> best =
      BestAnswers(scores, {.top_k = 2,
                           .allow_no_answer = true,
                           .no_answer_threshold = -std::numeric_limits<double>::infinity()});
  if (best.size() < 2) return {};
  const double no_answer = best[0].logit - best[1].logit;
  return {.answer = no_answer > 0 ? "" : text(best[1]), .no_answer = no_answer};
}

}  // namespace

absl::StatusOr<SquadAnswers> AnswerSquad(EncoderSession& session, const SquadFile& file) {
  Work work = PlanWork(session, file);
  HIPPODROME_RETURN_IF_ERROR(RunWindows(session, work.windows));
  SquadAnswers answers = {.version = file.some_impossible ? SquadVersion::k2 : SquadVersion::k1,
                          .windows = work.windows.size(),
                          .too_long = work.too_long};
  for (const Question& question : work.questions) {
    answers.questions.push_back(question.gold);
    answers.predictions.push_back(Predict(question, work.windows, answers.version));
  }
  return answers;
}

nlohmann::json SquadReport(const EncoderSession& session, const SquadAnswers& answers) {
  nlohmann::json json = session.Description();
  json.update({{"task", "squad"}, {"windows", answers.windows}, {"too_long", answers.too_long}});
  json.update(SquadReport(answers.questions, answers.predictions, answers.version));
  return json;
}

}  // namespace hippodrome
