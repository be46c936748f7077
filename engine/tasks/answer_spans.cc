#include "engine/tasks/answer_spans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "engine/tasks/best_indices.h"

namespace hippodrome {
namespace {

// The spans of one window, in no order.
void AddSpans(const WindowScores& scores, const AnswerOptions& options,
              std::vector<AnswerSpan>& spans) {
  const EncodedText& window = *scores.window;
  const std::vector<int32_t> ends = BestIndices(scores.end, options.candidates);
  for (const int32_t start : BestIndices(scores.start, options.candidates)) {
    if (window.sequence[start] != 1) continue;
    for (const int32_t end : ends) {
      if (window.sequence[end] != 1 || end < start) continue;
      if (end - start >= options.max_answer_tokens) continue;
      spans.push_back({.begin = window.pieces[start].begin,
                       .end = window.pieces[end].end,
                       .logit = double{scores.start[start]} + double{scores.end[end]}});
    }
  }
}

// Sorts the spans, best first, the earlier and shorter among equals, and keeps the first `most`
// places.
void KeepBest(std::vector<AnswerSpan>& spans, int64_t most) {
  std::sort(spans.begin(), spans.end(), [](const AnswerSpan& a, const AnswerSpan& b) {
    const std::weak_ordering order = std::weak_order(a.logit, b.logit);
    return order == 0 ? std::pair(a.begin, a.end) < std::pair(b.begin, b.end) : order > 0;
  });
  std::set<std::pair<int64_t, int64_t>> places;
  std::erase_if(spans, [&](const AnswerSpan& span) {
    return std::ssize(places) >= most || !places.emplace(span.begin, span.end).second;
  });
}

AnswerSpan NoAnswer(std::span<const WindowScores> windows) {
  AnswerSpan none{.logit = std::numeric_limits<double>::infinity(), .no_answer = true};
  for (const WindowScores& scores : windows) {
    none.logit = std::min(none.logit, double{scores.start[0]} + double{scores.end[0]});
  }
  return none;
}

// First where it exceeds the best span by more than the threshold, else by its score behind that.
void InsertNoAnswer(const AnswerSpan& none, double threshold, std::vector<AnswerSpan>& spans) {
  auto place = spans.begin();
  if (!spans.empty() && !(none.logit - spans[0].logit > threshold)) {
    place = std::find_if(spans.begin() + 1, spans.end(),
                         [&](const AnswerSpan& span) { return span.logit < none.logit; });
  }
  spans.insert(place, none);
}

// score = softmax over logits.
void ScoreByLogits(std::vector<AnswerSpan>& spans) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const AnswerSpan& span : spans) largest = std::max(largest, span.logit);
  double sum = 0;
  for (AnswerSpan& span : spans) {
    span.score = std::exp(span.logit - largest);
    sum += span.score;
  }
  for (AnswerSpan& span : spans) span.score /= sum;
}

}  // namespace

absl::StatusOr<QuestionWindowPlan> PlanQuestionWindows(int64_t question, int64_t context,
                                                       int64_t max_tokens, int64_t stride) {
  const int64_t room = max_tokens - question - 3;
  if (room < 1) {
    return absl::OutOfRangeError("the question has " + std::to_string(question) +
                                 " tokens, which leaves no room for a context: at most " +
                                 std::to_string(max_tokens - 4) + " fit");
  }
  const int64_t step = room - std::min(stride, room / 2);
  const int64_t beyond = std::max<int64_t>(context - room, 0);
  return QuestionWindowPlan{.part = room, .step = step, .windows = 1 + (beyond + step - 1) / step};
}

absl::StatusOr<std::vector<EncodedText>> QuestionWindows(const WordPieceTokenizer& tokenizer,
                                                         std::span<const WordPiece> question,
                                                         std::span<const WordPiece> context,
                                                         int64_t max_tokens, int64_t stride) {
  const auto plan =
      PlanQuestionWindows(std::ssize(question), std::ssize(context), max_tokens, stride);
  if (!plan.ok()) return plan.status();
  std::vector<EncodedText> windows;
  for (int64_t w = 0; w < plan->windows; ++w) {
    const int64_t begin = w * plan->step;
    const int64_t length = std::min(plan->part, std::ssize(context) - begin);
    windows.push_back(EncodePair(tokenizer, question, context.subspan(begin, length), true,
                                 max_tokens, Truncation::kNone));
  }
  return windows;
}

std::vector<AnswerSpan> BestAnswers(std::span<const WindowScores> windows,
                                    const AnswerOptions& options) {
  std::vector<AnswerSpan> spans;
  for (const WindowScores& scores : windows) AddSpans(scores, options, spans);
  KeepBest(spans, std::max(options.candidates, options.top_k));
  if (options.allow_no_answer && !windows.empty()) {
    InsertNoAnswer(NoAnswer(windows), options.no_answer_threshold, spans);
  }
  ScoreByLogits(spans);
  if (std::ssize(spans) > options.top_k) spans.resize(options.top_k);
  return spans;
}

}  // namespace hippodrome
