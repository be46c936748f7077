// EncodingHandlers::AnswerQuestion().
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/tasks/answer_spans.h"
#include "engine/tokenizer/code_points.h"
#include "server/handlers/encoding_handlers.h"
#include "server/handlers/encoding_inputs.h"
#include "server/handlers/encoding_submit.h"

namespace hippodrome {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 20;

struct QuestionOptions {
  AnswerOptions answers;
  int64_t stride = 128;
};

// A question with its context in windows.
struct WindowedQuestion {
  std::string context;
  std::vector<EncodedText> windows;
};

struct Answerer {
  AnswerOptions options;
  std::vector<WindowedQuestion> questions = {};

  void AddAnswers(const WindowedQuestion& question, std::span<const EncoderOutput> outputs,
                  v1::AnswerQuestionResponse::Result& result) const {
    // The outputs hold start and end of each token side by side.
    std::vector<std::vector<float>> starts, ends;
    std::vector<WindowScores> scores;
    for (const EncoderOutput& output : outputs) {
      std::vector<float>& start = starts.emplace_back();
      std::vector<float>& end = ends.emplace_back();
      for (int64_t t = 0; t < output.rows; ++t) {
        start.push_back(Row(output, t)[0]);
        end.push_back(Row(output, t)[1]);
      }
    }
    for (size_t w = 0; w < outputs.size(); ++w) {
      scores.push_back({&question.windows[w], starts[w], ends[w]});
    }
    for (const AnswerSpan& span : BestAnswers(scores, options)) {
      v1::AnswerQuestionResponse::Answer& answer = *result.add_answers();
      if (!span.no_answer) {
        answer.set_text(std::string(SliceCodePoints(question.context, span.begin, span.end)));
      }
      answer.set_score(static_cast<float>(span.score));
      answer.set_start(span.begin);
      answer.set_end(span.end);
    }
  }

  v1::AnswerQuestionResponse operator()(const std::vector<EncoderOutput>& outputs) const {
    v1::AnswerQuestionResponse response;
    std::span<const EncoderOutput> rest(outputs);
    for (const WindowedQuestion& question : questions) {
      AddAnswers(question, rest.first(question.windows.size()), *response.add_results());
      rest = rest.subspan(question.windows.size());
    }
    return response;
  }
};

absl::StatusOr<int64_t> ReadInteger(const char* field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return value;
  return FieldError(field, fmt::format("{} is not in [{}, {}]", value, least, most));
}

absl::StatusOr<QuestionOptions> ReadOptions(const v1::AnswerQuestionRequest& request,
                                            const RequestLimits& limits) {
  QuestionOptions options;
  AnswerOptions& answers = options.answers;
  if (request.has_top_k()) {
    HIPPODROME_ASSIGN_OR_RETURN(answers.top_k,
                                ReadInteger("top_k", request.top_k(), 1, limits.max_answers));
  }
  if (request.has_stride()) {
    HIPPODROME_ASSIGN_OR_RETURN(options.stride,
                                ReadInteger("stride", request.stride(), 0, kMostTokens));
  }
  if (request.has_max_answer_tokens()) {
    HIPPODROME_ASSIGN_OR_RETURN(
        answers.max_answer_tokens,
        ReadInteger("max_answer_tokens", request.max_answer_tokens(), 1, kMostTokens));
  }
  answers.allow_no_answer = request.allow_no_answer();
  answers.no_answer_threshold = request.no_answer_threshold();
  if (!std::isfinite(answers.no_answer_threshold)) {
    return FieldError("no_answer_threshold", "expected a finite number");
  }
  return options;
}

// The tokens of one question.
struct TokenizedQuestion {
  std::vector<WordPiece> question;
  std::vector<WordPiece> context;
};

absl::StatusOr<TokenizedQuestion> TokenizeQuestion(const std::string& place,
                                                   const v1::AnswerQuestionRequest::Question& q,
                                                   const WordPieceTokenizer& tokenizer) {
  TokenizedQuestion tokens{tokenizer.Tokenize(q.question()), tokenizer.Tokenize(q.context())};
  if (tokens.question.empty()) return FieldError(place + ".question", "it has no tokens");
  if (tokens.context.empty()) return FieldError(place + ".context", "it has no tokens");
  return tokens;
}

// Long contexts are measured before their windows are made.
absl::StatusOr<std::vector<TokenizedQuestion>> TokenizeQuestions(
    const v1::AnswerQuestionRequest& request, int64_t stride, ServedEncoder& model) {
  HIPPODROME_ASSIGN_OR_RETURN(const WordPieceTokenizer* tokenizer, model.Tokenizer());
  const int64_t most = model.engine().max_tokens();
  std::vector<TokenizedQuestion> questions;
  int64_t windows = 0;
  int64_t full_windows = 0;
  for (int i = 0; i < request.questions_size(); ++i) {
    const std::string place = Place("questions", i);
    HIPPODROME_ASSIGN_OR_RETURN(TokenizedQuestion tokens,
                                TokenizeQuestion(place, request.questions(i), *tokenizer));
    const auto plan =
        PlanQuestionWindows(std::ssize(tokens.question), std::ssize(tokens.context), most, stride);
    if (!plan.ok()) return At(place, plan.status());
    windows += plan->windows;
    full_windows += plan->windows - 1;
    questions.push_back(std::move(tokens));
  }
  HIPPODROME_RETURN_IF_ERROR(model.CheckSize(windows, full_windows * most));
  return questions;
}

}  // namespace

Answer<v1::AnswerQuestionResponse> EncodingHandlers::AnswerQuestion(
    const v1::AnswerQuestionRequest& request, const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(
      const std::shared_ptr<ServedEncoder> model,
      models_.FindEncoder(request.model(), {EncoderHead::kQuestionAnswering}));
  HIPPODROME_RETURN_IF_ERROR(CheckCount("questions", request.questions_size(), limits_));
  HIPPODROME_ASSIGN_OR_RETURN(const QuestionOptions options, ReadOptions(request, limits_));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<TokenizedQuestion> questions,
                              TokenizeQuestions(request, options.stride, *model));
  HIPPODROME_ASSIGN_OR_RETURN(const WordPieceTokenizer* tokenizer, model->Tokenizer());
  Answerer answerer{options.answers};
  std::vector<EncoderRequest> requests;
  for (size_t i = 0; i < questions.size(); ++i) {
    HIPPODROME_ASSIGN_OR_RETURN(
        std::vector<EncodedText> windows,
        QuestionWindows(*tokenizer, questions[i].question, questions[i].context,
                        model->engine().max_tokens(), options.stride));
    for (const EncodedText& window : windows) {
      if (const absl::Status status = CheckTokens(window, model->engine()); !status.ok()) {
        return At(Place("questions", static_cast<int64_t>(i)), status);
      }
      requests.push_back(NewRequest(window, EncoderTask::kHead, AllRows(window)));
    }
    answerer.questions.push_back(
        {request.questions(static_cast<int>(i)).context(), std::move(windows)});
  }
  return SubmitEncoding<v1::AnswerQuestionResponse>(*model, std::move(requests), caller,
                                                    std::move(answerer));
}

}  // namespace hippodrome
