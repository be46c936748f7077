// Handlers over fake encoders, one for each head.
#ifndef HIPPODROME_TESTS_SERVER_HANDLERS_ENCODING_HANDLERS_FIXTURE_H_
#define HIPPODROME_TESTS_SERVER_HANDLERS_ENCODING_HANDLERS_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/handlers/encoding_handlers.h"
#include "server/handlers/handlers.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome {

// The models "classes", "choices", "words" (masked LM), "tags" and "answers" behind a decoder, and
// "ids", which has neither head nor tokenizer.
class EncodingHandlersTest : public testing::Test {
 protected:
  EncodingHandlersTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("decoder"), metrics_));
    Add(models, "classes", EncoderHead::kSequenceClassification, {"bad", "good", "fair"});
    Add(models, "choices", EncoderHead::kMultipleChoice, {});
    Add(models, "words", EncoderHead::kMaskedLm, {});
    Add(models, "tags", EncoderHead::kTokenClassification, {"O", "B-PER", "I-PER", "B-LOC"});
    Add(models, "answers", EncoderHead::kQuestionAnswering, {});
    Add(models, "ids", EncoderHead::kNone, {}, /*with_tokenizer=*/false);
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
  }

  void Add(std::vector<std::unique_ptr<ServedModel>>& models, const std::string& name,
           EncoderHead head, std::vector<std::string> labels, bool with_tokenizer = true) {
    FakeEncoder* engine = nullptr;
    models.push_back(
        NewServedModel(NewFakeEncoderModel(name, {.head = head, .labels = std::move(labels)},
                                           &engine, with_tokenizer),
                       metrics_));
    engines_[name] = engine;
  }

  template <typename Response>
  static absl::StatusOr<Response> Await(Answer<Response> answer) {
    if (!answer.ok()) return answer.status();
    std::optional<absl::StatusOr<Response>> response;
    if (!WaitUntil([&] { return (response = (*answer)->Take()).has_value(); })) {
      return absl::DeadlineExceededError("nothing came");
    }
    return *std::move(response);
  }

  auto Classify(const v1::ClassifyRequest& r) { return Await(encoding().Classify(r, Api::kHttp)); }
  auto TagTokens(const v1::TagTokensRequest& r) {
    return Await(encoding().TagTokens(r, Api::kHttp));
  }
  auto FillMask(const v1::FillMaskRequest& r) { return Await(encoding().FillMask(r, Api::kHttp)); }
  auto AnswerQuestion(const v1::AnswerQuestionRequest& r) {
    return Await(encoding().AnswerQuestion(r, Api::kHttp));
  }
  auto Embed(const v1::EmbedRequest& r) { return Await(encoding().Embed(r, Api::kHttp)); }

  // [CLS] text [SEP], all of type 0.
  EncoderRequest LaidOut(const std::string& text) const {
    EncoderRequest request;
    request.ids.push_back(tokenizer_->cls());
    for (const WordPiece& piece : tokenizer_->Tokenize(text)) request.ids.push_back(piece.id);
    request.ids.push_back(tokenizer_->sep());
    request.types.assign(request.ids.size(), 0);
    return request;
  }

  std::vector<float> Output(const std::string& model, const EncoderRequest& request) const {
    return engines_.at(model)->Output(request).values;
  }

  EncodingHandlers& encoding() { return handlers_->encoding(); }

  Metrics metrics_;
  std::map<std::string, FakeEncoder*> engines_;
  std::unique_ptr<WordPieceTokenizer> tokenizer_ = NewSmallWordPiece();
  std::unique_ptr<Handlers> handlers_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_SERVER_HANDLERS_ENCODING_HANDLERS_FIXTURE_H_
