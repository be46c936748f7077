#include "server/encoding_handlers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "engine/status.h"
#include "engine/tasks/fill_mask.h"
#include "engine/tasks/label_scores.h"
#include "server/handlers.h"
#include "server/status_map.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

// ---- Models and inputs
// ---------------------------------------------------------------------------

v1::ClassifyRequest ClassifyText(const std::string& text) {
  v1::ClassifyRequest request;
  request.add_inputs()->set_text(text);
  return request;
}

TEST_F(EncodingHandlersTest, NoNameMeansTheFirstEncoderThatFits) {
  EXPECT_EQ(encoding().GetModel("")->name(), "classes");
  EXPECT_TRUE(absl::IsNotFound(encoding().GetModel("no").status()));
  EXPECT_TRUE(Classify(ClassifyText("paris")).ok());
  v1::FillMaskRequest fill;
  fill.add_inputs()->set_text("[MASK]");
  EXPECT_TRUE(FillMask(fill).ok());
}

TEST_F(EncodingHandlersTest, ModelsOfAnotherKindAreRefused) {
  v1::ClassifyRequest request = ClassifyText("paris");
  request.set_model("decoder");
  EXPECT_TRUE(absl::IsFailedPrecondition(Classify(request).status()));
  request.set_model("words");
  const absl::Status status = Classify(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), HasSubstr("masked_lm"));
  EXPECT_THAT(Message(status), HasSubstr("sequence_classification"));
  v1::FillMaskRequest fill;
  fill.set_model("classes");
  fill.add_inputs()->set_text("[MASK]");
  EXPECT_TRUE(absl::IsFailedPrecondition(FillMask(fill).status()));
}

TEST_F(EncodingHandlersTest, WithoutTokenizerOnlyTokensWork) {
  v1::EmbedRequest request;
  request.set_model("ids");
  request.add_inputs()->set_text("paris");
  EXPECT_TRUE(absl::IsFailedPrecondition(Embed(request).status()));
  auto& tokens = *request.mutable_inputs(0)->mutable_tokens();
  tokens.add_ids(7);
  tokens.add_ids(8);
  const auto response = Embed(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->usage().tokens(), 2);
}

TEST_F(EncodingHandlersTest, MistakesInInputsAreNamed) {
  v1::ClassifyRequest request;
  EXPECT_EQ(Field(Classify(request).status()), "inputs");
  request = ClassifyText("paris");
  request.add_inputs();
  EXPECT_EQ(Field(Classify(request).status()), "inputs[1]");
  request.mutable_inputs(1)->set_text("");
  EXPECT_EQ(Field(Classify(request).status()), "inputs[1]");
  request.mutable_inputs(1)->mutable_pair();
  EXPECT_EQ(Field(Classify(request).status()), "inputs[1]");
  auto& tokens = *request.mutable_inputs(1)->mutable_tokens();
  EXPECT_EQ(Field(Classify(request).status()), "inputs[1]");
  for (const int32_t bad : {-1, 100, std::numeric_limits<int32_t>::max()}) {
    tokens.clear_ids();
    tokens.add_ids(bad);
    EXPECT_EQ(Field(Classify(request).status()), "inputs[1]") << bad;
  }
  tokens.set_ids(0, 1);
  tokens.add_types(0);
  tokens.add_types(0);
  EXPECT_EQ(Field(Classify(request).status()), "inputs[1]");
  tokens.mutable_types()->RemoveLast();
  EXPECT_TRUE(Classify(request).ok());
  request.mutable_truncate()->set_direction(static_cast<v1::TruncationDirection>(9));
  EXPECT_EQ(Field(Classify(request).status()), "truncate.direction");
}

TEST_F(EncodingHandlersTest, InputsAreCounted) {
  v1::ClassifyRequest request;
  for (int i = 0; i < 1024; ++i) request.add_inputs()->set_text("a");
  EXPECT_TRUE(Classify(request).ok());
  request.add_inputs()->set_text("a");
  EXPECT_EQ(Field(Classify(request).status()), "inputs");
}

TEST_F(EncodingHandlersTest, LongInputsAreRefusedOrTruncated) {
  v1::ClassifyRequest request = ClassifyText("a");
  std::string text;
  for (int i = 0; i < 40; ++i) text += i < 20 ? "a " : "b ";
  request.add_inputs()->set_text(text);
  const absl::Status status = Classify(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(status), HasSubstr("inputs[1]"));
  EXPECT_THAT(Message(status), HasSubstr("42"));
  EXPECT_THAT(Message(status), HasSubstr("32"));
  request.mutable_truncate()->set_enabled(true);
  request.set_raw_scores(true);
  const auto right = Classify(request);
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(right->usage().tokens(), 3 + 32);
  request.mutable_truncate()->set_direction(v1::TRUNCATION_DIRECTION_LEFT);
  const auto left = Classify(request);
  const std::vector<float> expected = Output("classes", LaidOut(text.substr(20)));
  EXPECT_EQ(left->results(1).scores(0).score(),
            *std::max_element(expected.begin(), expected.end()));
  EXPECT_NE(left->results(1).scores(0).score(), right->results(1).scores(0).score());
}

TEST_F(EncodingHandlersTest, TokensAreNeverTruncated) {
  v1::ClassifyRequest request;
  auto& tokens = *request.add_inputs()->mutable_tokens();
  for (int i = 0; i < 33; ++i) tokens.add_ids(1);
  request.mutable_truncate()->set_enabled(true);
  EXPECT_EQ(Classify(request).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(EncodingHandlersTest, OutputsThatAreNoNumbersAreAnError) {
  engines_["classes"]->give_nan = true;
  EXPECT_TRUE(absl::IsInternal(Classify(ClassifyText("paris")).status()));
}

TEST_F(EncodingHandlersTest, AnAnswerThatNobodyWaitsForIsDropped) {
  engines_["classes"]->hold = true;
  auto running = encoding().Classify(ClassifyText("a"), Api::kHttp);
  ASSERT_TRUE(WaitUntil([&] { return engines_["classes"]->runs == 1; }));
  auto waiting = encoding().Classify(ClassifyText("b"), Api::kHttp);
  EXPECT_EQ(handlers_->pending(), 2);
  *waiting = nullptr;
  EXPECT_EQ(handlers_->pending(), 1);
  engines_["classes"]->hold = false;
}

TEST_F(EncodingHandlersTest, ClosedTheyTakeNothing) {
  handlers_->Close();
  EXPECT_TRUE(absl::IsUnavailable(Classify(ClassifyText("a")).status()));
}

// ---- Classify
// ------------------------------------------------------------------------------------

TEST_F(EncodingHandlersTest, ScoresAreThoseOfEachInputBestFirst) {
  v1::ClassifyRequest request;
  const std::vector<std::string> texts = {"paris", "the capital", "lyon is?"};
  for (const std::string& text : texts) request.add_inputs()->set_text(text);
  const auto response = Classify(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->results_size(), 3);
  const std::vector<std::string> labels = {"bad", "good", "fair"};
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> expected = LabelScores(Output("classes", LaidOut(texts[i])));
    const auto& scores = response->results(i).scores();
    ASSERT_EQ(scores.size(), 3);
    for (int j = 0; j < 3; ++j) {
      const auto label = std::find(labels.begin(), labels.end(), scores[j].label());
      EXPECT_EQ(scores[j].score(), expected[label - labels.begin()]);
      EXPECT_GE(scores[std::max(j - 1, 0)].score(), scores[j].score());
    }
  }
  EXPECT_EQ(response->usage().tokens(), 3 + 4 + 5);
}

TEST_F(EncodingHandlersTest, PairsHaveTwoTypes) {
  v1::ClassifyRequest request;
  request.add_inputs()->mutable_pair()->set_first("paris");
  request.mutable_inputs(0)->mutable_pair()->set_second("lyon");
  request.set_raw_scores(true);
  const auto response = Classify(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EncoderRequest pair = LaidOut("paris");
  pair.ids.push_back(tokenizer_->Find("lyon"));
  pair.ids.push_back(tokenizer_->sep());
  pair.types = {0, 0, 0, 1, 1};
  const std::vector<float> expected = Output("classes", pair);
  EXPECT_EQ(response->results(0).scores(0).score(),
            *std::max_element(expected.begin(), expected.end()));
}

TEST_F(EncodingHandlersTest, ChoicesAreOneResult) {
  v1::ClassifyRequest request;
  request.set_model("choices");
  std::vector<float> logits;
  for (const char* text : {"paris", "lyon", "a"}) {
    request.add_inputs()->set_text(text);
    logits.push_back(Output("choices", LaidOut(text))[0]);
  }
  const auto response = Classify(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->results_size(), 1);
  const auto& scores = response->results(0).scores();
  ASSERT_EQ(scores.size(), 3);
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  EXPECT_EQ(scores[0].label(), std::to_string(best));
  EXPECT_EQ(scores[0].score(), Softmax(logits)[best]);
}

// ---- Embed
// ---------------------------------------------------------------------------------------

TEST_F(EncodingHandlersTest, EveryModelEmbeds) {
  for (const auto& [model, engine] : engines_) {
    v1::EmbedRequest request;
    request.set_model(model);
    for (const int32_t id : {5, 6}) request.add_inputs()->mutable_tokens()->add_ids(id);
    request.set_normalize(false);
    const auto response = Embed(request);
    ASSERT_TRUE(response.ok()) << response.status();
    for (int i = 0; i < 2; ++i) {
      const std::vector<float> expected =
          Output(model, {.ids = {5 + i}, .types = {0}, .task = EncoderTask::kEmbedding});
      EXPECT_EQ(std::vector<float>(response->embeddings(i).values().begin(),
                                   response->embeddings(i).values().end()),
                expected);
    }
  }
}

TEST_F(EncodingHandlersTest, EmbeddingsHaveLengthOne) {
  v1::EmbedRequest request;
  request.add_inputs()->set_text("paris");
  const auto response = Embed(request);
  ASSERT_TRUE(response.ok()) << response.status();
  double sum = 0;
  for (const float value : response->embeddings(0).values()) sum += double{value} * value;
  // Eight values, each rounded once: |sum - 1| <= 2 u sum + o(u).
  EXPECT_NEAR(sum, 1, 2 * std::numeric_limits<float>::epsilon());
}

// ---- FillMask
// ------------------------------------------------------------------------------------

v1::FillMaskRequest Fill(const std::string& text) {
  v1::FillMaskRequest request;
  request.set_model("words");
  request.add_inputs()->set_text(text);
  return request;
}

TEST_F(EncodingHandlersTest, MasksAreFilledInOrder) {
  const std::string text = "the [MASK] of [MASK]!";
  const auto response = FillMask(Fill(text));
  ASSERT_TRUE(response.ok()) << response.status();
  EncoderRequest laid_out = LaidOut(text);
  laid_out.rows = {2, 4};
  const std::vector<float> logits = Output("words", laid_out);
  ASSERT_EQ(response->results_size(), 1);
  ASSERT_EQ(response->results(0).masks_size(), 2);
  for (int m = 0; m < 2; ++m) {
    const auto expected = LikeliestTokens(std::span(logits).subspan(100 * m, 100), 5);
    const auto& candidates = response->results(0).masks(m).candidates();
    ASSERT_EQ(candidates.size(), 5);
    for (int k = 0; k < 5; ++k) {
      EXPECT_EQ(candidates[k].token_id(), expected[k].id);
      EXPECT_EQ(candidates[k].score(), expected[k].score);
      EXPECT_EQ(candidates[k].token(), tokenizer_->Token(expected[k].id));
    }
  }
}

TEST_F(EncodingHandlersTest, TargetsNarrowTheChoice) {
  v1::FillMaskRequest request = Fill("[MASK] is the capital of [MASK].");
  for (const char* target : {"Paris", "lyon", "Paris"}) request.add_targets(target);
  const auto response = FillMask(request);
  ASSERT_TRUE(response.ok()) << response.status();
  const auto& candidates = response->results(0).masks(0).candidates();
  ASSERT_EQ(candidates.size(), 2);
  for (const auto& candidate : candidates) {
    EXPECT_EQ(candidate.sequence(), candidate.token() + " is the capital of [MASK].");
  }
  request.add_targets("lyonnais");
  const absl::Status status = FillMask(request).status();
  EXPECT_EQ(Field(status), "targets");
  EXPECT_THAT(Message(status), HasSubstr("lyonnais"));
}

TEST_F(EncodingHandlersTest, MistakesInFillMaskAreNamed) {
  v1::FillMaskRequest request = Fill("[MASK]");
  request.add_inputs()->set_text("paris");
  EXPECT_EQ(Field(FillMask(request).status()), "inputs[1]");
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    request = Fill("[MASK]");
    request.set_top_k(bad);
    EXPECT_EQ(Field(FillMask(request).status()), "top_k") << bad;
  }
  request.set_top_k(4096);
  EXPECT_TRUE(FillMask(request).ok());
  request.mutable_inputs(0)->set_text("[MASK] [MASK]");
  EXPECT_EQ(Field(FillMask(request).status()), "top_k");
  request.clear_inputs();
  request.set_top_k(1);
  for (int i = 0; i < 513; ++i) request.add_inputs()->set_text("[MASK]");
  EXPECT_EQ(Field(FillMask(request).status()), "inputs");
}

// ---- TagTokens
// -----------------------------------------------------------------------------------

v1::TagTokensRequest Tag(const std::string& text, v1::Aggregation aggregation) {
  v1::TagTokensRequest request;
  request.set_model("tags");
  request.add_inputs()->set_text(text);
  request.set_aggregation(aggregation);
  return request;
}

TEST_F(EncodingHandlersTest, SingleTokensAreTagged) {
  const std::string text = "Paris, ab";
  const auto response = TagTokens(Tag(text, v1::AGGREGATION_NONE));
  ASSERT_TRUE(response.ok()) << response.status();
  EncoderRequest laid_out = LaidOut(text);
  for (int32_t i = 0; i < std::ssize(laid_out.ids); ++i) laid_out.rows.push_back(i);
  const std::vector<float> logits = Output("tags", laid_out);
  for (const auto& entity : response->results(0).entities()) {
    EXPECT_EQ(entity.word(), tokenizer_->Token(laid_out.ids[entity.index()]));
    const std::vector<float> scores = Softmax(std::span(logits).subspan(4 * entity.index(), 4));
    EXPECT_EQ(entity.score(), *std::max_element(scores.begin(), scores.end()));
    EXPECT_NE(entity.label(), "O");
  }
}

TEST_F(EncodingHandlersTest, EntitiesArePartsOfTheText) {
  const std::string text = "Lyon is the capital? \u00c9 Paris, of france!";
  const std::string plain = "Lyon is the capital? E Paris, of france!";
  int entities = 0;
  for (const auto aggregation :
       {v1::AGGREGATION_UNSPECIFIED, v1::AGGREGATION_SIMPLE, v1::AGGREGATION_FIRST,
        v1::AGGREGATION_AVERAGE, v1::AGGREGATION_MAX}) {
    const auto response = TagTokens(Tag(text, aggregation));
    ASSERT_TRUE(response.ok()) << response.status();
    for (const auto& entity : response->results(0).entities()) {
      ++entities;
      std::string word = entity.word();
      const size_t accent = word.find("\u00c9");
      if (accent != std::string::npos) word.replace(accent, 2, "E");
      EXPECT_EQ(word, plain.substr(entity.start(), entity.end() - entity.start()));
    }
  }
  EXPECT_GT(entities, 0);
}

TEST_F(EncodingHandlersTest, TokensAreTaggedOneByOneAlone) {
  v1::TagTokensRequest request;
  request.set_model("tags");
  for (const int32_t id : {2, 63, 64, 3}) {
    if (request.inputs_size() == 0) request.add_inputs();
    request.mutable_inputs(0)->mutable_tokens()->add_ids(id);
  }
  EXPECT_EQ(Field(TagTokens(request).status()), "inputs[0]");
  request.set_aggregation(v1::AGGREGATION_NONE);
  const auto response = TagTokens(request);
  ASSERT_TRUE(response.ok()) << response.status();
  for (const auto& entity : response->results(0).entities()) {
    EXPECT_TRUE(entity.index() == 1 || entity.index() == 2);
  }
  request.mutable_inputs(0)->mutable_pair()->set_first("a");
  EXPECT_EQ(Field(TagTokens(request).status()), "inputs[0]");
  request.set_aggregation(static_cast<v1::Aggregation>(17));
  EXPECT_EQ(Field(TagTokens(request).status()), "aggregation");
}

// ---- AnswerQuestion
// ------------------------------------------------------------------------------

v1::AnswerQuestionRequest Ask(const std::string& question, const std::string& context) {
  v1::AnswerQuestionRequest request;
  request.set_model("answers");
  request.add_questions()->set_question(question);
  request.mutable_questions(0)->set_context(context);
  return request;
}

TEST_F(EncodingHandlersTest, AnswersArePartsOfTheContext) {
  std::string context;
  for (int i = 0; i < 30; ++i) context += "Paris is the capital, ";
  v1::AnswerQuestionRequest request = Ask("the capital?", context);
  *request.add_questions() = request.questions(0);
  request.mutable_questions(1)->set_context("Lyon!");
  request.set_top_k(4);
  request.set_stride(4);
  const auto response = AnswerQuestion(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->results_size(), 2);
  EXPECT_EQ(response->results(0).answers_size(), 4);
  for (int i = 0; i < 2; ++i) {
    for (const auto& answer : response->results(i).answers()) {
      EXPECT_FALSE(answer.text().empty());
      EXPECT_EQ(answer.text(), request.questions(i).context().substr(
                                   answer.start(), answer.end() - answer.start()));
    }
  }
  EXPECT_GT(response->usage().tokens(), 150);
}

TEST_F(EncodingHandlersTest, ThereMayBeNoAnswer) {
  v1::AnswerQuestionRequest request = Ask("is?", "Paris");
  request.set_allow_no_answer(true);
  request.set_no_answer_threshold(-100);
  const auto response = AnswerQuestion(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->results(0).answers(0).text(), "");
  EXPECT_EQ(response->results(0).answers(0).end(), 0);
}

TEST_F(EncodingHandlersTest, MistakesInQuestionsAreNamed) {
  const auto field = [&](const v1::AnswerQuestionRequest& request) {
    return Field(AnswerQuestion(request).status());
  };
  v1::AnswerQuestionRequest request;
  request.set_model("answers");
  EXPECT_EQ(field(request), "questions");
  EXPECT_EQ(field(Ask("a", "")), "questions[0].context");
  EXPECT_EQ(field(Ask("a", "  ")), "questions[0].context");
  EXPECT_EQ(field(Ask("", "a")), "questions[0].question");
  request = Ask("a", "b");
  for (const int64_t bad : {int64_t{0}, int64_t{101}, std::numeric_limits<int64_t>::min()}) {
    request.set_top_k(bad);
    EXPECT_EQ(field(request), "top_k") << bad;
  }
  request = Ask("a", "b");
  request.set_stride(-1);
  EXPECT_EQ(field(request), "stride");
  request = Ask("a", "b");
  request.set_max_answer_tokens(0);
  EXPECT_EQ(field(request), "max_answer_tokens");
  request = Ask("a", "b");
  request.set_no_answer_threshold(std::nanf(""));
  EXPECT_EQ(field(request), "no_answer_threshold");
}

TEST_F(EncodingHandlersTest, QuestionsThatAreTooLongAreRefused) {
  std::string question;
  for (int i = 0; i < 40; ++i) question += "a ";
  const absl::Status status = AnswerQuestion(Ask(question, "b")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(status), HasSubstr("questions[0]"));
}

TEST_F(EncodingHandlersTest, AContextOfTooManyWindowsIsRefused) {
  std::string context;
  for (int i = 0; i < 80000; ++i) context += "a ";
  const absl::Status status = AnswerQuestion(Ask("b", context)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(status), HasSubstr("the queue takes at most 4096 inputs"));
}

}  // namespace
}  // namespace hippodrome
