#include "tools/train/data/question_answering.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/tasks/answer_spans.h"
#include "engine/tokenizer/code_points.h"
#include "tools/train/data/encoded_examples.h"

namespace hippodrome {
namespace {

// A part of the context, [begin, end), in code points or in pieces; empty for no answer.
struct Place {
  int64_t begin = 0;
  int64_t end = 0;
};

int64_t CodePoints(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

absl::StatusOr<Place> PlaceOf(const SquadQuestion& question, std::string_view context) {
  if (question.answers.empty()) return Place{};
  const std::string& answer = question.answers[0];
  const int64_t begin = question.answer_starts[0];
  const Place place = {begin, begin + CodePoints(answer)};
  if (begin >= 0 && !answer.empty() && SliceCodePoints(context, place.begin, place.end) == answer) {
    return place;
  }
  return InvalidArgument("the answer '" + OneLine(answer) + "' to '" + OneLine(question.question) +
                         "' does not stand at answer_start in the context");
}

// Pieces of the context that have some of the answer, [begin, end).
Place PiecesOf(Place answer, std::span<const WordPiece> context) {
  const auto first = std::find_if(context.begin(), context.end(),
                                  [&](const WordPiece& piece) { return piece.end > answer.begin; });
  const auto last = std::find_if(first, context.end(),
                                 [&](const WordPiece& piece) { return piece.begin >= answer.end; });
  return {first - context.begin(), last - context.begin()};
}

// The first and the last token of the pieces in a window whose context begins with piece `begin`,
// or 0 twice.
std::vector<int32_t> LabelsOf(const EncodedText& window, int64_t begin, Place pieces) {
  const auto part = std::find(window.sequence.begin(), window.sequence.end(), 1);
  const int64_t size = std::count(part, window.sequence.end(), 1);
  const bool inside = pieces.begin >= begin && pieces.end <= begin + size;
  if (!inside || pieces.begin >= pieces.end) return {0, 0};
  const int64_t shift = (part - window.sequence.begin()) - begin;
  return {static_cast<int32_t>(pieces.begin + shift), static_cast<int32_t>(pieces.end - 1 + shift)};
}

absl::Status AppendQuestion(const SquadQuestion& question, const std::string& context,
                            std::span<const WordPiece> pieces, int64_t stride,
                            const WordPieceTokenizer& tokenizer, EncodedExamples& data) {
  HIPPODROME_ASSIGN_OR_RETURN(const Place answer, PlaceOf(question, context));
  const std::vector<WordPiece> asked = tokenizer.Tokenize(question.question);
  const auto plan = PlanQuestionWindows(std::ssize(asked), std::ssize(pieces), data.length, stride);
  if (!plan.ok()) return absl::OkStatus();  // it leaves no room
  HIPPODROME_ASSIGN_OR_RETURN(auto windows,
                              QuestionWindows(tokenizer, asked, pieces, data.length, stride));
  const Place answer_pieces = PiecesOf(answer, pieces);
  for (size_t i = 0; i < windows.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * plan->step;
    std::vector<int32_t> labels = LabelsOf(windows[i], begin, answer_pieces);
    data.examples.push_back({.ids = std::move(windows[i].ids),
                             .types = std::move(windows[i].types),
                             .labels = std::move(labels)});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingData>> MakeQuestionAnswering(
    const SquadFile& file, const WordPieceTokenizer& tokenizer, int64_t length, int64_t stride,
    const BatchOptions& options) {
  if (stride < 0) {
    return InvalidArgument("the stride is " + std::to_string(stride) + ", expected at least 0");
  }
  HIPPODROME_ASSIGN_OR_RETURN(EncodedExamples data, NoExamples(tokenizer, length, 2));
  for (const SquadParagraph& paragraph : file.paragraphs) {
    const std::vector<WordPiece> pieces = tokenizer.Tokenize(paragraph.context);
    for (const SquadQuestion& question : paragraph.questions) {
      HIPPODROME_RETURN_IF_ERROR(
          AppendQuestion(question, paragraph.context, pieces, stride, tokenizer, data));
    }
  }
  return MakeEncodedData(std::move(data), options);
}

}  // namespace hippodrome
