#include "server/routes/tei_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"

namespace hippodrome::tei_routes_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TeiRoutesTest : public testing::Test {
 protected:
  TeiRoutesTest() {
    models_.push_back(NewServedModel(NewFakeModel("h3"), metrics_));
    Add("classifier", {"bad", "good"});
    Add("reranker", {"relevant"});
    server_ = std::make_unique<RoutesServer>(std::move(models_), metrics_);
  }

  void Add(const std::string& name, const std::vector<std::string>& labels) {
    FakeEncoderOptions options;
    options.labels = labels;
    options.vocab_size = 68;  // the tokenizer's
    models_.push_back(NewServedModel(NewFakeEncoderModel(name, options), metrics_));
  }

  HttpAnswer Post(const std::string& path, const json& body) {
    return HttpClient(server_->address()).Post(path, body.dump());
  }
  json Call(const std::string& path, const json& body) {
    const HttpAnswer answer = Post(path, body);
    EXPECT_EQ(answer.status, 200) << path << " " << body << ": " << answer.body;
    return json::parse(answer.body);
  }

  Metrics metrics_;
  std::vector<std::unique_ptr<ServedModel>> models_;
  std::unique_ptr<RoutesServer> server_;
};

TEST_F(TeiRoutesTest, RerankSortsTextsByTheScoresOfTheirPairs) {
  const std::vector<std::string> texts = {"paris", "lyon", "the capital", "france"};
  const json ranks =
      Call("/rerank", {{"query", "capital"}, {"texts", texts}, {"return_text", true}});
  ASSERT_EQ(ranks.size(), texts.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t index = ranks[i]["index"].get<size_t>();
    EXPECT_EQ(ranks[i]["text"], texts[index]);
    const json alone =
        Call("/predict", {{"inputs", {"capital", texts[index]}}, {"model", "reranker"}});
    EXPECT_EQ(ranks[i]["score"], alone[0]["score"]);
    EXPECT_LE(ranks[i]["score"], ranks[i == 0 ? 0 : i - 1]["score"]);
  }
  const json raw = Call("/rerank", {{"query", "capital"}, {"texts", texts}, {"raw_scores", true}});
  EXPECT_FALSE(raw[0].contains("text"));
  EXPECT_NE(raw[0]["score"], ranks[0]["score"]);
  EXPECT_EQ(raw[0]["index"], ranks[0]["index"]);
}

TEST_F(TeiRoutesTest, RerankNeedsAClassifierWithOneLabel) {
  const HttpAnswer answer =
      Post("/rerank", {{"query", "a"}, {"texts", {"b"}}, {"model", "classifier"}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("sequence_classification, with 2 labels"));
  EXPECT_EQ(Post("/rerank", {{"query", "a"}, {"texts", {"b"}}, {"model", "h3"}}).status, 400);
  EXPECT_EQ(Post("/rerank", {{"query", "a"}, {"texts", {"b"}}, {"model", "no"}}).status, 404);
}

TEST_F(TeiRoutesTest, SimilaritiesAreCosinesOfEmbeddings) {
  const json cosines =
      Call("/similarity",
           {{"inputs", {{"source_sentence", "paris"}, {"sentences", {"paris", "lyon"}}}}});
  ASSERT_EQ(cosines.size(), 2u);
  EXPECT_NEAR(cosines[0].get<double>(), 1, 1e-6);  // roundings of unit vectors
  const json embeddings = Call("/embed", {{"inputs", {"paris", "lyon"}}});
  double dot = 0;
  for (size_t i = 0; i < embeddings[0].size(); ++i) {
    dot += embeddings[0][i].get<double>() * embeddings[1][i].get<double>();
  }
  EXPECT_NEAR(cosines[1].get<double>(), dot, 1e-6);
}

TEST_F(TeiRoutesTest, TokensHavePlacesInTheirText) {
  const json tokens =
      Call("/tokenize", {{"inputs", {"Paris is", "\u00e9a"}}, {"model", "classifier"}});
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0][0], json::parse(R"({"id": 2, "text": "[CLS]", "special": true,
                                          "start": null, "stop": null})"));
  EXPECT_EQ(tokens[0][1]["text"], "Paris");
  EXPECT_EQ(tokens[0][1]["start"], 0);
  EXPECT_EQ(tokens[0][1]["stop"], 5);
  EXPECT_EQ(tokens[0][2]["text"], "is");
  EXPECT_EQ(tokens[0][2]["start"], 6);
  EXPECT_EQ(tokens[0][3]["text"], "[SEP]");
  EXPECT_EQ(tokens[1][1]["text"], "\u00e9");
  EXPECT_EQ(tokens[1][2]["start"], 1);
  const json bare =
      Call("/tokenize", {{"inputs", "is"}, {"model", "classifier"}, {"add_special_tokens", false}});
  ASSERT_EQ(bare[0].size(), 1u);
  EXPECT_EQ(bare[0][0]["special"], false);
}

TEST_F(TeiRoutesTest, BytesOfADecoderHaveThePlaceOfTheirCharacter) {
  const json tokens = Call("/tokenize", {{"inputs", "a\u00e9b"}});
  ASSERT_EQ(tokens[0].size(), 4u);  // a token for each byte
  const std::vector<std::pair<int, int>> places = {{0, 1}, {1, 2}, {1, 2}, {2, 3}};
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(tokens[0][i]["start"], places[i].first) << i;
    EXPECT_EQ(tokens[0][i]["stop"], places[i].second) << i;
  }
  EXPECT_EQ(tokens[0][3]["text"], "b");
}

TEST_F(TeiRoutesTest, BothShapesOfTokenize) {
  EXPECT_EQ(Call("/tokenize", {{"prompt", "ab"}})["count"], 2);
  EXPECT_EQ(Call("/tokenize", {{"inputs", "ab"}})[0].size(), 2u);
  EXPECT_EQ(Post("/tokenize", {{"text", "ab"}}).status, 400);
  EXPECT_EQ(Post("/tokenize", {{"inputs", std::string((1 << 20) + 1, 'a')}}).status, 400);
  EXPECT_EQ(Post("/tokenize", {{"inputs", json::array()}}).status, 400);
}

TEST_F(TeiRoutesTest, Decode) {
  const json ids = {2, 65, 64, 3};
  const json body = {{"ids", ids}, {"model", "classifier"}};
  const json plain = Call("/decode", body);
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_THAT(plain[0].get<std::string>(), testing::Not(HasSubstr("[CLS]")));
  json all = body;
  all["skip_special_tokens"] = false;
  EXPECT_THAT(Call("/decode", all)[0].get<std::string>(), HasSubstr("[CLS]"));
  EXPECT_EQ(Call("/decode", {{"ids", {{97}, {98, 256}}}}), json({"a", "b"}));
  EXPECT_EQ(Post("/decode", {{"ids", {999}}}).status, 400);
  EXPECT_EQ(Post("/decode", {{"ids", "x"}}).status, 400);
}

TEST_F(TeiRoutesTest, UnknownAndWrongFieldsAreNamed) {
  struct Row {
    const char* path;
    const char* body;
    const char* field;
  };
  const Row rows[] = {
      {"/rerank", R"({"query": "a", "texts": ["b"], "top_k": 1})", "top_k"},
      {"/rerank", R"({"query": "a"})", "texts"},
      {"/rerank", R"({"query": "a", "texts": []})", "inputs"},
      {"/rerank", R"({"query": "a", "texts": [1]})", "texts"},
      {"/rerank", R"({"query": 1, "texts": ["b"]})", "query"},
      {"/rerank", R"({"query": "a", "texts": ["b"], "truncation_direction": "up"})",
       "truncation_direction"},
      {"/similarity", R"({"inputs": "a"})", "inputs"},
      {"/similarity", R"({"inputs": {"source_sentence": "a", "sentences": []}})", "sentences"},
      {"/similarity", R"({"inputs": {"sentences": ["a"]}})", "source_sentence"},
      {"/similarity",
       R"({"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"x": 1}})", "x"},
      {"/decode", R"({"ids": [1], "x": 1})", "x"},
      {"/decode", R"({"ids": [-1]})", "ids"},
      {"/tokenize", R"({"inputs": "a", "prompt_name": "x"})", "prompt_name"},
      {"/tokenize", R"({"inputs": 1})", "inputs"},
  };
  for (const Row& row : rows) {
    const HttpAnswer answer = HttpClient(server_->address()).Post(row.path, row.body);
    EXPECT_EQ(answer.status, 400) << row.body;
    EXPECT_EQ(json::parse(answer.body)["error"]["param"], row.field) << row.body;
  }
}

}  // namespace
}  // namespace hippodrome::tei_routes_test
