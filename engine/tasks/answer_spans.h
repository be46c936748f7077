// Extractive question answering: windows over a long context, and the best spans over all of them
// (the procedure that is usual for SQuAD).
#ifndef HIPPODROME_ENGINE_TASKS_ANSWER_SPANS_H_
#define HIPPODROME_ENGINE_TASKS_ANSWER_SPANS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/encode_pair.h"

namespace hippodrome {

// How a context is read in windows of at most max_tokens: [CLS] question [SEP] part [SEP].
struct QuestionWindowPlan {
  int64_t part = 0;     // tokens of the context in one window, at most
  int64_t step = 0;     // from the beginning of a part to that of the next
  int64_t windows = 0;  // at least 1
};

// For a question and a context of so many tokens. Parts overlap by `stride` tokens, or by half of
// their length where that is less, so that the parts together are about twice as long as the
// context at most; but each repeats the question: ask for the plan before long windows are made of
// untrusted text. Errors: kOutOfRange when the question leaves no room for a context. REQUIRES:
// stride >= 0.
absl::StatusOr<QuestionWindowPlan> PlanQuestionWindows(int64_t question, int64_t context,
                                                       int64_t max_tokens, int64_t stride = 128);

// The windows of that plan. Places in the pieces of sequence 1 are those in the context. Errors and
// requirements as above.
absl::StatusOr<std::vector<EncodedText>> QuestionWindows(const WordPieceTokenizer& tokenizer,
                                                         std::span<const WordPiece> question,
                                                         std::span<const WordPiece> context,
                                                         int64_t max_tokens, int64_t stride = 128);

struct AnswerOptions {
  int64_t top_k = 1;        // answers
  int64_t candidates = 20;  // starts and ends considered in each window
  int64_t max_answer_tokens = 30;
  bool allow_no_answer = false;    // SQuAD 2: the answer may be that there is none
  double no_answer_threshold = 0;  // none if its score exceeds the best span's by more than this
};

// The logits of one window, one for each of its tokens.
struct WindowScores {
  const EncodedText* window = nullptr;
  std::span<const float> start;
  std::span<const float> end;
};

struct AnswerSpan {
  int64_t begin = 0;  // code points of the context; begin = end = 0 for no answer
  int64_t end = 0;
  double score = 0;  // probability among the best spans, and no answer where it is allowed
  double logit = 0;  // start + end
  bool no_answer = false;
};

// The best spans, best first, at most top_k, no place twice. A span's start and end are among the
// `candidates` highest of its window, both in the context, the end not before the start, at most
// max_answer_tokens long. No answer scores start[0] + end[0], the least over all windows; it stands
// first or, below the threshold, by its score behind the best span. Scores are the softmax of the
// logits of the `candidates` (top_k if that is more) best spans. REQUIRES: counts of at least 1.
std::vector<AnswerSpan> BestAnswers(std::span<const WindowScores> windows,
                                    const AnswerOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TASKS_ANSWER_SPANS_H_
