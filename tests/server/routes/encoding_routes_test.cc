#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::encoding_routes_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The routes behind a real server, over a fake decoder and one fake encoder for each head.
class EncodingRoutesTest : public testing::Test {
 protected:
  EncodingRoutesTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("h3"), metrics_));
    Add(models, "classifier", EncoderHead::kSequenceClassification, {"bad", "good", "fair"});
    Add(models, "filler", EncoderHead::kMaskedLm, {});
    Add(models, "tagger", EncoderHead::kTokenClassification, {"O", "B-PER", "I-PER", "B-LOC"});
    Add(models, "answerer", EncoderHead::kQuestionAnswering, {"start", "end"});
    Add(models, "chooser", EncoderHead::kMultipleChoice, {"LABEL_0", "LABEL_1"});
    server_ = std::make_unique<RoutesServer>(std::move(models), metrics_);
  }

  void Add(std::vector<std::unique_ptr<ServedModel>>& models, const std::string& name,
           EncoderHead head, const std::vector<std::string>& labels) {
    FakeEncoderOptions options;
    options.head = head;
    options.labels = labels;
    options.vocab_size = 68;  // the tokenizer's
    ModelParts parts = NewFakeEncoderModel(name, options, &encoders_[name]);
    models.push_back(NewServedModel(std::move(parts), metrics_));
  }

  HttpAnswer Post(const std::string& path, const json& body) {
    return HttpClient(server_->address()).Post(path, body.dump());
  }
  // The answer to a call that must succeed.
  json Call(const std::string& path, const json& body) {
    const HttpAnswer answer = Post(path, body);
    EXPECT_EQ(answer.status, 200) << path << " " << body << ": " << answer.body;
    return json::parse(answer.body);
  }
  json Info() { return json::parse(HttpClient(server_->address()).Get("/info").body); }

  Metrics metrics_;
  std::map<std::string, FakeEncoder*> encoders_;
  std::unique_ptr<RoutesServer> server_;
};

TEST_F(EncodingRoutesTest, Predict) {
  const json one = Call("/predict", {{"inputs", "paris"}});
  ASSERT_EQ(one.size(), 3u);
  EXPECT_GE(one[0]["score"], one[1]["score"]);
  double sum = 0;
  for (const json& score : one) sum += score["score"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-6);  // three roundings of 6e-8
  const json pair = Call("/predict", {{"inputs", {"paris", "lyon"}}});
  EXPECT_NE(pair, one);
  // A batch gives what its members give alone.
  const json batch =
      Call("/predict", {{"inputs", json::array({json::array({"paris"}), {"paris", "lyon"}})}});
  EXPECT_EQ(batch, json::array({one, pair}));
}

TEST_F(EncodingRoutesTest, PredictAsHuggingfaceHubCallsIt) {
  const json plain = Call("/predict", {{"inputs", "paris"}});
  EXPECT_EQ(Call("/predict", {{"inputs", "paris"}, {"parameters", json::object()}}),
            json::array({plain}));
  const auto apply = [&](const char* function) {
    return Call("/predict",
                {{"inputs", "paris"}, {"parameters", {{"function_to_apply", function}}}})[0];
  };
  EXPECT_EQ(apply("none"), Call("/predict", {{"inputs", "paris"}, {"raw_scores", true}}));
  const json logits = apply("none");
  const json sigmoid = apply("sigmoid");
  const json softmax = apply("softmax");
  for (int i = 0; i < 3; ++i) {
    const double logit = logits[i]["score"].get<double>();
    EXPECT_EQ(sigmoid[i]["label"], logits[i]["label"]);
    EXPECT_NEAR(sigmoid[i]["score"].get<double>(), 1 / (1 + std::exp(-logit)), 1e-6);
    EXPECT_NEAR(softmax[i]["score"].get<double>(), plain[i]["score"].get<double>(), 1e-6);
  }
}

// The choices of a question are one batch, and one result.
TEST_F(EncodingRoutesTest, PredictChoosesAmongInputs) {
  const json choices = json::array({{"is paris", "a"}, {"is paris", "b"}});
  const json body = Call("/predict", {{"model", "chooser"}, {"inputs", choices}});
  ASSERT_EQ(body.size(), 1u);
  ASSERT_EQ(body[0].size(), 2u);
  EXPECT_NEAR(body[0][0]["score"].get<double>() + body[0][1]["score"].get<double>(), 1, 1e-6);
}

TEST_F(EncodingRoutesTest, Embed) {
  const json one = Call("/embed", {{"inputs", "the capital"}});
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(one[0].size(), 8u);
  double norm = 0;
  for (const json& x : one[0]) norm += x.get<double>() * x.get<double>();
  EXPECT_NEAR(norm, 1, 1e-6);  // eight squares of numbers rounded to 6e-8
  const json two = Call("/embed", {{"inputs", {"the capital", "paris"}}});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0], one[0]);
  const json ids =
      json::parse(HttpClient(server_->address())
                      .Post("/tokenize", R"({"model": "classifier", "prompt": "the capital"})")
                      .body)["tokens"];
  EXPECT_EQ(Call("/embed", {{"inputs", ids}}), one);
  EXPECT_NE(Call("/embed", {{"inputs", "the capital"}, {"normalize", false}}), one);
}

TEST_F(EncodingRoutesTest, EmbedAllGivesEachTokenAsItIs) {
  const json two = Call("/embed_all", {{"inputs", {"the capital", "paris"}}});
  ASSERT_EQ(two.size(), 2u);
  ASSERT_EQ(two[0].size(), 4u);  // [CLS] the capital [SEP]
  ASSERT_EQ(two[1].size(), 3u);
  for (const json& token : two[0]) EXPECT_EQ(token.size(), 8u);
  EXPECT_NE(two[0][1], two[0][2]);
  EXPECT_EQ(Call("/embed_all", {{"inputs", "paris"}}), json::array({two[1]}));
  double most = 0;  // of values in [-4, 4]: they are not normalised
  for (const json& x : two[0][1]) most = std::max(most, std::abs(x.get<double>()));
  EXPECT_GT(most, 1);
}

TEST_F(EncodingRoutesTest, Embeddings) {
  const json body = Call("/v1/embeddings", {{"model", "filler"}, {"input", {"paris", "lyon"}}});
  EXPECT_EQ(body["object"], "list");
  EXPECT_EQ(body["model"], "filler");
  EXPECT_EQ(body["usage"], json({{"prompt_tokens", 6}, {"total_tokens", 6}}));
  ASSERT_EQ(body["data"].size(), 2u);
  EXPECT_EQ(body["data"][1]["index"], 1);
  EXPECT_EQ(body["data"][1]["object"], "embedding");
  EXPECT_EQ(json::array({body["data"][0]["embedding"], body["data"][1]["embedding"]}),
            Call("/embed", {{"model", "filler"}, {"inputs", {"paris", "lyon"}}}));
  const json base64 = Call("/v1/embeddings",
                           {{"input", "paris"}, {"encoding_format", "base64"}, {"dimensions", 8}});
  EXPECT_EQ(base64["model"], "classifier");
  EXPECT_EQ(base64["data"][0]["embedding"].get<std::string>().size(), 44u);  // 32 bytes
}

TEST_F(EncodingRoutesTest, FillMask) {
  const json one =
      Call("/fill_mask", {{"model", "filler"}, {"inputs", "the capital of france is [MASK]."}});
  ASSERT_EQ(one.size(), 5u);
  EXPECT_GE(one[0]["score"], one[1]["score"]);
  EXPECT_TRUE(one[0]["token"].is_number_integer());
  EXPECT_TRUE(one[0]["token_str"].is_string());
  EXPECT_THAT(one[0]["sequence"].get<std::string>(), HasSubstr("the capital of france"));
  const json two = Call("/fill_mask", {{"model", "filler"},
                                       {"inputs", "[MASK] [MASK]"},
                                       {"parameters", {{"targets", {"paris", "lyon"}}}}});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].size(), 2u);
}

TEST_F(EncodingRoutesTest, TokenClassification) {
  const json groups =
      Call("/token_classification", {{"model", "tagger"}, {"inputs", "the capital of france"}});
  for (const json& group : groups) EXPECT_TRUE(group["entity_group"].is_string()) << group;
  const json batch =
      Call("/token_classification", {{"model", "tagger"},
                                     {"inputs", json::array({"the capital of france"})},
                                     {"parameters", {{"aggregation_strategy", "none"}}}});
  ASSERT_EQ(batch.size(), 1u);
  for (const json& token : batch[0]) EXPECT_GE(token["index"], 1) << token;
}

TEST_F(EncodingRoutesTest, QuestionAnswering) {
  const json question = {{"question", "the capital ?"}, {"context", "paris is the capital"}};
  const json one = Call("/question_answering", {{"model", "answerer"}, {"inputs", question}});
  const std::string context = question["context"];
  const size_t start = one["start"];
  EXPECT_EQ(one["answer"], context.substr(start, one["end"].get<size_t>() - start));
  const json several =
      Call("/question_answering",
           {{"model", "answerer"}, {"inputs", question}, {"parameters", {{"top_k", 3}}}});
  ASSERT_EQ(several.size(), 3u);
  EXPECT_EQ(several[0], one);
  EXPECT_EQ(Call("/question_answering",
                 {{"model", "answerer"}, {"inputs", json::array({question, question})}}),
            json::array({one, one}));
}

TEST_F(EncodingRoutesTest, ErrorsHaveTheRightStatusAndName) {
  struct Row {
    const char* path;
    json body;
    int status;
    json param;
  };
  const std::string words = "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a";
  const Row rows[] = {
      {"/predict", {{"inputs", 5}}, 400, "inputs"},
      {"/predict", {{"inputs", words}}, 400, nullptr},
      {"/predict", {{"inputs", "a"}, {"model", "no"}}, 404, nullptr},
      {"/predict", {{"inputs", "a"}, {"model", "h3"}}, 400, nullptr},
      {"/predict", {{"inputs", "a"}, {"model", "tagger"}}, 400, nullptr},
      {"/embed", {{"inputs", json::array()}}, 400, "inputs"},
      {"/embed", {{"inputs", "a"}, {"dimensions", 9}}, 400, "dimensions"},
      {"/v1/embeddings", {{"input", "a"}, {"dimensions", 9}}, 400, "dimensions"},
      {"/v1/embeddings", {{"input", "a"}, {"model", "no"}, {"dimensions", 8}}, 404, nullptr},
      {"/fill_mask", {{"model", "filler"}, {"inputs", "[MASK]"}, {"top_k", 0}}, 400, "top_k"},
      {"/token_classification", {{"inputs", "a"}, {"stride", 1}}, 400, "stride"},
      {"/question_answering", {{"inputs", {{"question", "a"}}}}, 400, "context"},
  };
  for (const Row& row : rows) {
    const HttpAnswer answer = Post(row.path, row.body);
    EXPECT_EQ(answer.status, row.status) << row.path << row.body << answer.body;
    EXPECT_EQ(json::parse(answer.body)["error"]["param"], row.param) << row.body << answer.body;
  }
  EXPECT_EQ(Post("/predict", {{"inputs", words}, {"truncate", true}}).status, 200);
  EXPECT_EQ(HttpClient(server_->address()).Get("/predict").status, 405);
  // A request is counted until its answer has left, which its client may see first.
  EXPECT_TRUE(WaitUntil([&] { return server_->handlers().pending() == 0; }));
}

TEST_F(EncodingRoutesTest, ADisconnectDropsTheWork) {
  FakeEncoder& encoder = *encoders_.at("classifier");
  encoder.hold = true;
  HttpClient running(server_->address());
  running.SendRequest("POST", "/predict", R"({"inputs": "a"})");
  ASSERT_TRUE(WaitUntil([&] { return encoder.runs == 1; }));
  {
    HttpClient waiting(server_->address());
    waiting.SendRequest("POST", "/predict", R"({"inputs": "b"})");
    ASSERT_TRUE(WaitUntil([&] { return server_->handlers().pending() == 2; }));
    waiting.Close();
  }
  EXPECT_TRUE(WaitUntil([&] { return server_->handlers().pending() == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return metrics_.Text().find("code=\"499\"") != std::string::npos; }));
  encoder.hold = false;
  EXPECT_EQ(running.Read().status, 200);
  EXPECT_EQ(encoder.runs, 1);
}

TEST_F(EncodingRoutesTest, AFailureOfTheModelIsAnError) {
  encoders_.at("classifier")->give_nan = true;
  const HttpAnswer answer = Post("/predict", {{"inputs", "a"}});
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(json::parse(answer.body)["error"]["type"], "server_error");
}

TEST_F(EncodingRoutesTest, InfoIsThatOfTheFirstEncoder) {
  const json info = Info();
  EXPECT_EQ(info["model_id"], "classifier");
  EXPECT_EQ(info["model_type"]["classifier"]["label2id"]["good"], 1);
  EXPECT_EQ(info["max_input_length"], 32);
}

TEST_F(EncodingRoutesTest, AllModelsAreListed) {
  const json models = json::parse(HttpClient(server_->address()).Get("/v1/models").body)["data"];
  ASSERT_EQ(models.size(), 6u);
  EXPECT_EQ(models[0]["id"], "h3");
  EXPECT_EQ(models[1]["id"], "classifier");
}

TEST_F(EncodingRoutesTest, RequestsAreCountedByRouteAndModel) {
  Call("/embed", {{"inputs", "a"}, {"model", "filler"}});
  Post("/embed", {{"inputs", 5}});
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, testing::ContainsRegex("code=\"200\"[^\n]*model=\"filler\"[^\n]*/embed"));
  EXPECT_THAT(text, testing::ContainsRegex("code=\"400\"[^\n]*/embed"));
}

}  // namespace
}  // namespace hippodrome::encoding_routes_test
