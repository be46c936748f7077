#include "server/json/json_encoding_responses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/version.h"

namespace hippodrome::json_encoding_responses_test {
namespace {

using nlohmann::json;

v1::ClassifyResponse Classes(const std::vector<std::vector<float>>& results) {
  v1::ClassifyResponse response;
  for (const std::vector<float>& scores : results) {
    v1::ClassifyResponse::Result& result = *response.add_results();
    for (size_t i = 0; i < scores.size(); ++i) {
      result.add_scores()->set_label("L" + std::to_string(i));
      result.mutable_scores(static_cast<int>(i))->set_score(scores[i]);
    }
  }
  return response;
}

TEST(PredictBodyTest, OneInputAndBatches) {
  PredictCall call;
  EXPECT_EQ(PredictBody(call, Classes({{0.75f, 0.15f}})),
            R"([{"label":"L0","score":0.75},{"label":"L1","score":0.15}])");
  call.nested = true;
  EXPECT_EQ(PredictBody(call, Classes({{0.5f}, {1}})),
            R"([[{"label":"L0","score":0.5}],[{"label":"L0","score":1.0}]])");
}

TEST(PredictBodyTest, TopKBoundsTheLabels) {
  PredictCall call;
  for (const auto& [top_k, count] : {std::pair(1, 1u), std::pair(2, 2u), std::pair(9, 3u)}) {
    call.top_k = top_k;
    EXPECT_EQ(json::parse(PredictBody(call, Classes({{3, 2, 1}}))).size(), count);
  }
}

// Softmax counts the labels that top_k leaves out.
TEST(PredictBodyTest, FunctionsAreAppliedToRawScores) {
  PredictCall call;
  call.top_k = 1;
  call.function = PredictCall::Function::kSoftmax;
  EXPECT_EQ(PredictBody(call, Classes({{3, 3}})), R"([{"label":"L0","score":0.5}])");
  EXPECT_EQ(PredictBody(call, Classes({{3}})), R"([{"label":"L0","score":1.0}])");
  call.function = PredictCall::Function::kSigmoid;
  const json sigmoid = json::parse(PredictBody(call, Classes({{std::log(3.0f), -1}})));
  EXPECT_NEAR(sigmoid[0]["score"].get<double>(), 0.75, 1e-6);  // a few roundings of 6e-8
}

v1::EmbedResponse Embeddings() {
  v1::EmbedResponse response;
  for (const std::vector<float>& values : {std::vector<float>{1, -0.1f}, {0.5f, 2}}) {
    response.add_embeddings()->mutable_values()->Add(values.begin(), values.end());
  }
  response.mutable_usage()->set_tokens(7);
  return response;
}

TEST(EmbedBodyTest, AListOfVectors) {
  EXPECT_EQ(EmbedBody(Embeddings()), "[[1.0,-0.1],[0.5,2.0]]");
}

TEST(EmbedBodyTest, FloatsComeBackAsTheyAre) {
  v1::EmbedResponse response;
  const std::vector<float> values = {1.0f / 3, 1e-38f, 3.4028235e38f,
                                     16777215, 0.1f,   std::numeric_limits<float>::denorm_min()};
  response.add_embeddings()->mutable_values()->Add(values.begin(), values.end());
  const json body = json::parse(EmbedBody(response));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(static_cast<float>(body[0][i].get<double>()), values[i]);
  }
}

TEST(EmbeddingsBodyTest, FloatsAndBase64) {
  EmbedCall call;
  call.request.set_model("m");
  EXPECT_EQ(EmbeddingsBody(call, Embeddings()),
            R"({"object":"list","data":[)"
            R"({"object":"embedding","index":0,"embedding":[1.0,-0.1]},)"
            R"({"object":"embedding","index":1,"embedding":[0.5,2.0]}],)"
            R"("model":"m","usage":{"prompt_tokens":7,"total_tokens":7}})");
  call.base64 = true;
  // 00 00 80 3f cd cc cc bd; 00 00 00 3f 00 00 00 40
  const json data = json::parse(EmbeddingsBody(call, Embeddings()))["data"];
  EXPECT_EQ(data[0]["embedding"], "AACAP83MzL0=");
  EXPECT_EQ(data[1]["embedding"], "AAAAPwAAAEA=");
}

v1::FillMaskResponse::Result Masks(int count) {
  v1::FillMaskResponse::Result result;
  for (int i = 0; i < count; ++i) {
    v1::FillMaskResponse::Candidate& candidate = *result.add_masks()->add_candidates();
    candidate.set_score(0.5f);
    candidate.set_token_id(i);
    candidate.set_token("t");
    candidate.set_sequence("a t");
  }
  return result;
}

TEST(FillMaskBodyTest, OneMaskSeveralMasksAndBatches) {
  FillMaskCall call;
  v1::FillMaskResponse response;
  *response.add_results() = Masks(1);
  EXPECT_EQ(FillMaskBody(call, response),
            R"([{"score":0.5,"token":0,"token_str":"t","sequence":"a t"}])");
  *response.mutable_results(0) = Masks(2);
  const json two = json::parse(FillMaskBody(call, response));
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1][0]["token"], 1);
  call.batch = true;
  *response.add_results() = Masks(1);
  const json batch = json::parse(FillMaskBody(call, response));
  EXPECT_EQ(batch[0][1][0]["token"], 1);
  EXPECT_EQ(batch[1][0]["token"], 0);
}

TEST(TokenClassificationBodyTest, GroupsTokensAndBatches) {
  v1::TagTokensResponse response;
  v1::TagTokensResponse::Entity& entity = *response.add_results()->add_entities();
  entity.set_label("PER");
  entity.set_score(0.25f);
  entity.set_word("Ann");
  entity.set_start(3);
  entity.set_end(6);
  entity.set_index(2);
  TokenClassificationCall call;
  EXPECT_EQ(TokenClassificationBody(call, response),
            R"([{"entity_group":"PER","score":0.25,"word":"Ann","start":3,"end":6}])");
  call.request.set_aggregation(v1::AGGREGATION_NONE);
  EXPECT_EQ(TokenClassificationBody(call, response),
            R"([{"entity":"PER","score":0.25,"index":2,"word":"Ann","start":3,"end":6}])");
  call.batch = true;
  response.add_results();
  const json batch = json::parse(TokenClassificationBody(call, response));
  EXPECT_EQ(batch[0][0]["entity"], "PER");
  EXPECT_EQ(batch[1], json::array());
}

TEST(QuestionAnsweringBodyTest, OneSeveralAndBatches) {
  v1::AnswerQuestionResponse response;
  v1::AnswerQuestionResponse::Answer& answer = *response.add_results()->add_answers();
  answer.set_text("Paris");
  answer.set_score(0.5f);
  answer.set_start(4);
  answer.set_end(9);
  const std::string expected = R"({"score":0.5,"start":4,"end":9,"answer":"Paris"})";
  QuestionAnsweringCall call;
  EXPECT_EQ(QuestionAnsweringBody(call, response), expected);
  call.request.set_top_k(1);
  EXPECT_EQ(QuestionAnsweringBody(call, response), expected);
  call.request.set_top_k(2);
  EXPECT_EQ(QuestionAnsweringBody(call, response), "[" + expected + "]");
  call.batch = true;
  call.request.clear_top_k();
  response.add_results();  // no answer at all
  EXPECT_EQ(QuestionAnsweringBody(call, response),
            "[" + expected + R"(,{"score":0.0,"start":0,"end":0,"answer":""}])");
}

v1::Model Encoder(const std::string& head, const std::vector<std::string>& labels) {
  v1::Model model;
  model.set_name("m");
  model.set_weights("bf16");
  model.set_max_positions(128);
  model.set_max_batch_tokens(4096);
  model.set_embedding_size(8);
  model.set_head(head);
  for (const std::string& label : labels) model.add_labels(label);
  return model;
}

TEST(InfoBodyTest, TellsTheTypeOfModel) {
  const RequestLimits limits;
  const HttpOptions http;
  const json classifier =
      json::parse(InfoBody(Encoder("sequence_classification", {"no", "yes"}), limits, http));
  EXPECT_EQ(classifier["model_id"], "m");
  EXPECT_EQ(classifier["model_dtype"], "bfloat16");
  EXPECT_EQ(classifier["max_input_length"], 128);
  EXPECT_EQ(classifier["max_batch_tokens"], 4096);
  EXPECT_EQ(classifier["max_client_batch_size"], limits.max_inputs);
  EXPECT_EQ(classifier["max_concurrent_requests"], http.max_connections);
  EXPECT_EQ(classifier["tokenization_workers"], http.threads);
  EXPECT_EQ(classifier["version"], Version());
  EXPECT_EQ(
      classifier["model_type"],
      json({{"classifier",
             {{"id2label", {{"0", "no"}, {"1", "yes"}}}, {"label2id", {{"no", 0}, {"yes", 1}}}}}}));
  const json reranker =
      json::parse(InfoBody(Encoder("sequence_classification", {"s"}), limits, http));
  EXPECT_EQ(reranker["model_type"]["reranker"]["id2label"]["0"], "s");
  const json embedding = json::parse(InfoBody(Encoder("masked_lm", {}), limits, http));
  EXPECT_EQ(embedding["model_type"], json({{"embedding", {{"pooling", "mean"}}}}));
  v1::Model decoder;
  decoder.set_weights("f32");
  const json other = json::parse(InfoBody(decoder, limits, http));
  EXPECT_EQ(other["model_type"], nullptr);
  EXPECT_EQ(other["model_dtype"], "float32");
}

}  // namespace
}  // namespace hippodrome::json_encoding_responses_test
