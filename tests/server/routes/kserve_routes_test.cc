#include "server/routes/kserve_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"

namespace hippodrome::kserve_routes_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class KServeRoutesTest : public testing::Test {
 protected:
  KServeRoutesTest() {
    models_.push_back(NewServedModel(NewFakeModel("h3"), metrics_));
    Add("classifier", EncoderHead::kSequenceClassification, {"bad", "good", "fair"});
    Add("filler", EncoderHead::kMaskedLm, {});
    Add("tagger", EncoderHead::kTokenClassification, {"O", "B-PER", "I-PER", "B-LOC"});
    Add("answerer", EncoderHead::kQuestionAnswering, {"start", "end"});
    Add("chooser", EncoderHead::kMultipleChoice, {"LABEL_0", "LABEL_1"});
    Add("bare", EncoderHead::kNone, {});
    server_ = std::make_unique<RoutesServer>(std::move(models_), metrics_);
  }

  void Add(const std::string& name, EncoderHead head, const std::vector<std::string>& labels) {
    FakeEncoderOptions options;
    options.head = head;
    options.labels = labels;
    options.vocab_size = 68;  // the tokenizer's
    models_.push_back(NewServedModel(NewFakeEncoderModel(name, options), metrics_));
  }

  HttpAnswer Get(const std::string& path) { return HttpClient(server_->address()).Get(path); }
  HttpAnswer Post(const std::string& path, const std::string& body) {
    return HttpClient(server_->address()).Post(path, body);
  }
  HttpAnswer Infer(const std::string& model, const json& body) {
    return Post("/v2/models/" + model + "/infer", body.dump());
  }
  // The outputs of a call that must succeed, by name.
  json Outputs(const std::string& model, const json& body) {
    const HttpAnswer answer = Infer(model, body);
    EXPECT_EQ(answer.status, 200) << model << " " << body << ": " << answer.body;
    const json body_of_answer = json::parse(answer.body);
    json outputs;
    for (const json& output : body_of_answer["outputs"]) outputs[output["name"]] = output;
    return outputs;
  }
  static json Texts(const std::string& name, const std::vector<std::string>& texts) {
    return {{"name", name}, {"datatype", "BYTES"}, {"shape", {texts.size()}}, {"data", texts}};
  }
  static json Body(const std::vector<json>& inputs) { return {{"inputs", inputs}}; }
  json Plain(const std::string& path, const json& body) {
    return json::parse(Post(path, body.dump()).body);
  }

  Metrics metrics_;
  std::vector<std::unique_ptr<ServedModel>> models_;
  std::unique_ptr<RoutesServer> server_;
};

TEST_F(KServeRoutesTest, HealthAndMetadata) {
  EXPECT_EQ(json::parse(Get("/v2/health/live").body), json({{"live", true}}));
  EXPECT_EQ(json::parse(Get("/v2/health/ready").body), json({{"ready", true}}));
  EXPECT_EQ(json::parse(Get("/v2/models/h3/ready").body), json({{"name", "h3"}, {"ready", true}}));
  EXPECT_EQ(Get("/v2/models/h3/versions/1/ready").status, 200);
  EXPECT_EQ(Get("/v2/models/h3/versions/2/ready").status, 404);
  EXPECT_EQ(Get("/v2/models/no/ready").status, 404);
  const json server = json::parse(Get("/v2").body);
  EXPECT_EQ(server["name"], "hippodrome");
  EXPECT_THAT(server["extensions"].dump(), HasSubstr("binary_tensor_data"));
  const json model = json::parse(Get("/v2/models/classifier").body);
  EXPECT_EQ(model["versions"], json({"1"}));
  EXPECT_EQ(model["inputs"][0], json({{"name", "text"}, {"datatype", "BYTES"}, {"shape", {-1}}}));
  EXPECT_EQ(model["outputs"][0],
            json({{"name", "scores"}, {"datatype", "FP32"}, {"shape", {-1, 3}}}));
  server_->handlers().Close();
  EXPECT_EQ(Get("/v2/health/live").status, 200);
  EXPECT_EQ(Get("/v2/health/ready").status, 503);
  EXPECT_EQ(Get("/v2/models/h3/ready").status, 503);
}

// What each model says of its outputs is what it gives.
TEST_F(KServeRoutesTest, OutputsAreAsTheMetadataSays) {
  const json text = Texts("text", {"paris is [MASK]", "lyon [MASK] ."});
  const json question = Texts("question", {"paris ?", "lyon ?"});
  const json context = Texts("context", {"paris is the capital", "lyon is"});
  for (const std::string model :
       {"classifier", "filler", "tagger", "answerer", "chooser", "bare"}) {
    const json outputs =
        Outputs(model, model == "answerer" ? Body({question, context}) : Body({text}));
    const json metadata = json::parse(Get("/v2/models/" + model).body);
    for (const json& told : metadata["outputs"]) {
      const std::string name = told["name"];
      if (name == "embedding" && model != "bare") continue;
      ASSERT_TRUE(outputs.contains(name)) << model << " " << name;
      const json& output = outputs[name];
      EXPECT_EQ(output["datatype"], told["datatype"]);
      ASSERT_EQ(output["shape"].size(), told["shape"].size()) << model << " " << name;
      size_t elements = 1;
      for (size_t i = 0; i < told["shape"].size(); ++i) {
        if (told["shape"][i] != -1) {
          EXPECT_EQ(output["shape"][i], told["shape"][i]);
        }
        elements *= output["shape"][i].get<size_t>();
      }
      EXPECT_EQ(output["data"].size(), elements) << model << " " << name;
    }
  }
}

TEST_F(KServeRoutesTest, ScoresAreThoseOfPredictInTheOrderOfTheLabels) {
  const json outputs =
      Outputs("classifier",
              Body({Texts("text", {"paris", "lyon"}), Texts("text_pair", {"france", "france"})}));
  EXPECT_EQ(outputs["labels"]["data"], json({"bad", "good", "fair"}));
  const json plain =
      Plain("/predict", json::parse(R"({"inputs": [["paris", "france"], ["lyon", "france"]]})"));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(outputs["label"]["data"][i], plain[i][0]["label"]);
    for (const json& score : plain[i]) {
      const json& labels = outputs["labels"]["data"];
      const size_t column =
          std::find(labels.begin(), labels.end(), score["label"]) - labels.begin();
      EXPECT_EQ(outputs["scores"]["data"][3 * i + column], score["score"]);
    }
  }
  json raw = Body({Texts("text", {"paris"})});
  raw["parameters"] = {{"raw_scores", true}};
  EXPECT_NE(Outputs("classifier", raw)["scores"]["data"], outputs["scores"]["data"]);
}

TEST_F(KServeRoutesTest, AnyEncoderOfTextsGivesItsEmbedding) {
  json body = Body({Texts("text", {"paris", "lyon"})});
  body["outputs"] = json::parse(R"([{"name": "embedding"}])");
  body["parameters"] = {{"normalize", false}};
  const json embedding = Outputs("classifier", body)["embedding"];
  EXPECT_EQ(embedding["shape"], json({2, 8}));
  const json plain = Plain(
      "/embed", {{"inputs", {"paris", "lyon"}}, {"model", "classifier"}, {"normalize", false}});
  EXPECT_EQ(embedding["data"][8], plain[1][0]);
  body["outputs"] = json::parse(R"([{"name": "embedding"}, {"name": "scores"}])");
  body.erase("parameters");
  EXPECT_EQ(Infer("classifier", body).status, 400);
}

TEST_F(KServeRoutesTest, OnlyTheOutputsAskedForInTheirOrder) {
  json body = Body({Texts("text", {"paris"})});
  body["id"] = "7";
  body["outputs"] = json::parse(R"([{"name": "label"}, {"name": "scores"}])");
  const json answer = json::parse(Infer("classifier", body).body);
  EXPECT_EQ(answer["id"], "7");
  EXPECT_EQ(answer["model_name"], "classifier");
  EXPECT_EQ(answer["model_version"], "1");
  ASSERT_EQ(answer["outputs"].size(), 2u);
  EXPECT_EQ(answer["outputs"][0]["name"], "label");
}

TEST_F(KServeRoutesTest, BinaryTensorsBothWays) {
  const std::string tensor("\5\0\0\0paris\4\0\0\0lyon", 17);
  const json head = {{"inputs",
                      {{{"name", "text"},
                        {"datatype", "BYTES"},
                        {"shape", {2, 1}},
                        {"parameters", {{"binary_data_size", tensor.size()}}}}}},
                     {"outputs",
                      {{{"name", "scores"}, {"parameters", {{"binary_data", true}}}},
                       {{"name", "label"}, {"parameters", {{"binary_data", false}}}}}},
                     {"parameters", {{"binary_data_output", true}}}};
  const std::string text = head.dump();
  HttpClient client(server_->address());
  client.Send("POST /v2/models/classifier/infer HTTP/1.1\r\nHost: test\r\nContent-Length: " +
              std::to_string(text.size() + tensor.size()) +
              "\r\nInference-Header-Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" +
              text + tensor);
  const HttpAnswer answer = client.Read();
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.headers.at("content-type"), "application/octet-stream");
  const size_t size = std::stoul(answer.headers.at("inference-header-content-length"));
  const json outputs = json::parse(answer.body.substr(0, size))["outputs"];
  EXPECT_EQ(outputs[0]["parameters"]["binary_data_size"], 24);
  ASSERT_EQ(answer.body.size(), size + 24);
  EXPECT_EQ(outputs[1]["data"].size(), 2u);
  const json plain = Outputs("classifier", Body({Texts("text", {"paris", "lyon"})}));
  for (size_t i = 0; i < 6; ++i) {
    float score;
    std::memcpy(&score, answer.body.data() + size + 4 * i, sizeof(score));
    EXPECT_EQ(score, plain["scores"]["data"][i].get<float>());
  }
}

TEST_F(KServeRoutesTest, WhatDoesNotFitIsRefused) {
  struct Row {
    const char* body;
    const char* what;
  };
  const Row rows[] = {
      {"{}", "inputs"},
      {R"({"inputs": []})", "text: this input is missing"},
      {R"({"inputs": 1})", "inputs"},
      {R"({"inputs": [{"name": "text", "datatype": "FP32", "shape": [1], "data": [1]}]})", "BYTES"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [2], "data": ["a"]}]})",
       "1 texts, but the shape says 2"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [-1], "data": ["a"]}]})",
       "size -1"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES",
           "shape": [4294967296, 4294967296], "data": []}]})",
       "elements"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES",
           "shape": [18446744073709551615], "data": []}]})",
       "shape"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": [1]}]})", "data"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1]}]})", "data"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1],
           "parameters": {"binary_data_size": 8}}]})",
       "binary_data_size"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1],
           "parameters": {"binary_data_size": -1}}]})",
       "binary_data_size"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"],
           "parameters": {"shared_memory_region": "x"}}]})",
       "shared_memory_region"},
      {R"({"inputs": [{"name": "other", "datatype": "BYTES", "shape": [1], "data": ["a"]}]})",
       "no input 'other'"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]}],
           "outputs": [{"name": "other"}]})",
       "no output 'other'"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]}],
           "parameters": {"top_k": 1}})",
       "top_k"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]},
           {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]}]})",
       "twice"},
      {R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]},
           {"name": "text_pair", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]}]})",
       "text_pair"},
      {R"({"inputs": [], "extra": 1})", "extra"},
  };
  for (const Row& row : rows) {
    const HttpAnswer answer = Post("/v2/models/classifier/infer", row.body);
    EXPECT_EQ(answer.status, 400) << row.body;
    EXPECT_THAT(json::parse(answer.body)["error"].get<std::string>(), HasSubstr(row.what))
        << row.body;
  }
  EXPECT_EQ(Infer("no", Body({Texts("text", {"a"})})).status, 404);
}

TEST_F(KServeRoutesTest, ADecoderTakesAndGivesATensorOfOneText) {
  json body = Body({Texts("text_input", {"abc"})});
  body["parameters"] = {{"max_tokens", 4}, {"temperature", 0}};
  const json outputs = Outputs("h3", body);
  EXPECT_EQ(outputs["text_output"]["data"], json({"abca"}));
  EXPECT_EQ(outputs["text_output"]["shape"], json({1}));
  EXPECT_EQ(Infer("h3", Body({Texts("text_input", {"a", "b"})})).status, 400);
  EXPECT_EQ(Infer("h3", Body({Texts("text_input", {})})).status, 400);
  body["parameters"] = {{"truncate", true}};
  EXPECT_EQ(Infer("h3", body).status, 400);
  body["parameters"] = {{"top_p", 2}};
  EXPECT_EQ(Infer("h3", body).status, 400);
}

TEST_F(KServeRoutesTest, GenerateAndItsStream) {
  const std::string body =
      R"({"text_input": "abc", "id": "x", "max_tokens": 5, "parameters": {"temperature": 0}})";
  const json whole = json::parse(Post("/v2/models/h3/generate", body).body);
  EXPECT_EQ(
      whole,
      json({{"id", "x"}, {"model_name", "h3"}, {"model_version", "1"}, {"text_output", "abcab"}}));
  const HttpAnswer stream = Post("/v2/models/h3/versions/1/generate_stream", body);
  EXPECT_EQ(stream.headers.at("content-type"), "text/event-stream");
  std::string text;
  for (size_t at = 0; at < stream.body.size();) {
    const size_t end = stream.body.find("\n\n", at);
    text += json::parse(stream.body.substr(at + 6, end - at - 6))["text_output"];
    at = end + 2;
  }
  EXPECT_EQ(text, "abcab");
  const std::vector<std::pair<std::string, const char*>> refused = {
      {R"({"text_input": "a", "stream": true})", "stream"},
      {R"({"text_input": "a", "bad_words": ""})", "bad_words"},
      {R"({"text_input": "a", "parameters": {"bad_words": ""}})", "bad_words"},
      {R"({"text_input": "a", "top_k": 1, "parameters": {"top_k": 1}})", "twice"},
      {R"({"text_input": ""})", "empty"},
      {"{}", "text_input"}};
  for (const auto& [bad, what] : refused) {
    const HttpAnswer answer = Post("/v2/models/h3/generate", bad);
    EXPECT_EQ(answer.status, 400) << bad;
    EXPECT_THAT(json::parse(answer.body)["error"].get<std::string>(), HasSubstr(what));
  }
  EXPECT_EQ(Post("/v2/models/classifier/generate", R"({"text_input": "a"})").status, 400);
}

TEST_F(KServeRoutesTest, GenerateTakesTheNumbersThatAllProtocolsHave) {
  const char* numbers = R"("max_tokens": 2.0, "temperature": 0.5, "top_p": 0.9, "top_k": 3.0,
      "min_p": 0.1, "typical_p": 0.9, "repetition_penalty": 1.2, "presence_penalty": -1,
      "frequency_penalty": 2, "seed": -1.0)";
  for (const std::string& body :
       {R"({"text_input": "abc", )" + std::string(numbers) + "}",
        R"({"text_input": "abc", "parameters": {)" + std::string(numbers) + "}}"}) {
    const HttpAnswer answer = Post("/v2/models/h3/generate", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(json::parse(answer.body)["text_output"], "ab");
  }
  const HttpAnswer answer =
      Post("/v2/models/h3/generate", R"({"text_input": "abc", "max_tokens": 2.5})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("max_tokens: expected an integer"));
}

}  // namespace
}  // namespace hippodrome::kserve_routes_test
