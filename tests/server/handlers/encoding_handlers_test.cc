#include "server/handlers/encoding_handlers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/tasks/label_scores.h"
#include "tests/server/handlers/encoding_handlers_fixture.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::encoding_handlers_test {
namespace {

using testing::HasSubstr;

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

TEST_F(EncodingHandlersTest, EmbeddingsOfTokensStandInputByInput) {
  v1::EmbedRequest request;
  for (const int32_t id : {5, 6}) request.add_inputs()->mutable_tokens()->add_ids(id);
  request.mutable_inputs(1)->mutable_tokens()->add_ids(7);
  request.set_per_token(true);
  request.set_normalize(false);
  const auto response = Embed(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->tokens(), testing::ElementsAre(1, 2));
  ASSERT_EQ(response->embeddings_size(), 3);
  const std::vector<float> expected = Output(
      "classes",
      {.ids = {6, 7}, .types = {0, 0}, .task = EncoderTask::kTokenEmbeddings, .rows = {0, 1}});
  std::vector<float> values;
  for (int i = 1; i < 3; ++i) {
    const auto& embedding = response->embeddings(i).values();
    values.insert(values.end(), embedding.begin(), embedding.end());
  }
  EXPECT_EQ(values, expected);
}

TEST_F(EncodingHandlersTest, TooManyEmbeddingsOfTokensAreRefused) {
  std::vector<std::unique_ptr<ServedModel>> models;
  models.push_back(NewServedModel(NewFakeEncoderModel("m"), metrics_));
  RequestLimits limits;
  limits.max_token_values = 31;
  Handlers handlers(std::move(models), limits);
  v1::EmbedRequest request;
  for (int i = 0; i < 2; ++i) request.add_inputs()->mutable_tokens()->add_ids(5);
  request.set_per_token(true);
  EXPECT_TRUE(handlers.encoding().Embed(request, Api::kHttp).ok());
  for (int i = 0; i < 2; ++i) request.add_inputs()->mutable_tokens()->add_ids(5);
  const absl::Status status = handlers.encoding().Embed(request, Api::kHttp).status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("32 values"));
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

}  // namespace
}  // namespace hippodrome::encoding_handlers_test
