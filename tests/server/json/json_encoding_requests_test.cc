#include "server/json/json_encoding_requests.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/base/field_error.h"

namespace hippodrome::json_encoding_requests_test {
namespace {

TEST(ParsePredictTest, ReadsEveryField) {
  const auto call = ParsePredict(R"({"inputs": "a", "model": "m", "truncate": true,
      "truncation_direction": "Left", "raw_scores": true, "top_k": 2, "user": [{}]})");
  ASSERT_TRUE(call.ok()) << call.status();
  const v1::ClassifyRequest& request = call->request;
  EXPECT_EQ(request.model(), "m");
  ASSERT_EQ(request.inputs_size(), 1);
  EXPECT_EQ(request.inputs(0).text(), "a");
  EXPECT_TRUE(request.truncate().enabled());
  EXPECT_EQ(request.truncate().direction(), v1::TRUNCATION_DIRECTION_LEFT);
  EXPECT_TRUE(request.raw_scores());
  EXPECT_EQ(call->top_k, 2);
  EXPECT_EQ(call->function, PredictCall::Function::kDefault);
  EXPECT_FALSE(call->nested);
}

TEST(ParsePredictTest, AbsentAndNullFieldsStayUnset) {
  for (const char* body : {R"({"inputs": "a"})",
                           R"({"inputs": "a", "model": null, "truncate": null, "top_k": null,
                               "truncation_direction": null, "raw_scores": null,
                               "parameters": null})"}) {
    const auto call = ParsePredict(body);
    ASSERT_TRUE(call.ok()) << call.status();
    EXPECT_EQ(call->request.model(), "");
    EXPECT_FALSE(call->request.truncate().enabled() || call->request.raw_scores() || call->top_k ||
                 call->nested);
  }
}

// Two strings are one pair, not a batch.
TEST(ParsePredictTest, AllShapesOfInputs) {
  const auto one = ParsePredict(R"({"inputs": ["a"]})");
  EXPECT_EQ(one->request.inputs(0).text(), "a");
  EXPECT_FALSE(one->nested);
  const auto pair = ParsePredict(R"({"inputs": ["a", "b"]})");
  ASSERT_EQ(pair->request.inputs_size(), 1);
  EXPECT_EQ(pair->request.inputs(0).pair().first(), "a");
  EXPECT_EQ(pair->request.inputs(0).pair().second(), "b");
  EXPECT_FALSE(pair->nested);
  const auto batch = ParsePredict(R"({"inputs": [["a"], ["b", "c"]]})");
  ASSERT_EQ(batch->request.inputs_size(), 2);
  EXPECT_EQ(batch->request.inputs(0).text(), "a");
  EXPECT_EQ(batch->request.inputs(1).pair().second(), "c");
  EXPECT_TRUE(batch->nested);
}

TEST(ParsePredictTest, TakesWhatHuggingfaceHubSends) {
  const auto plain = ParsePredict(R"({"inputs": "a", "parameters": {}})");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->nested);
  EXPECT_FALSE(plain->request.raw_scores());
  struct Row {
    const char* function;
    PredictCall::Function expected;
  };
  for (const Row& row : {Row{"none", PredictCall::Function::kDefault},
                         Row{"softmax", PredictCall::Function::kSoftmax},
                         Row{"sigmoid", PredictCall::Function::kSigmoid}}) {
    const auto call = ParsePredict(
        std::string(R"({"inputs": "a", "parameters": {"top_k": 1, "function_to_apply": ")") +
        row.function + "\"}}");
    ASSERT_TRUE(call.ok()) << call.status();
    EXPECT_EQ(call->function, row.expected);
    EXPECT_TRUE(call->request.raw_scores());
    EXPECT_EQ(call->top_k, 1);
  }
}

TEST(ParseEmbedTest, AllShapesOfInputs) {
  EXPECT_EQ(ParseEmbed(R"({"inputs": "a"})")->request.inputs(0).text(), "a");
  const auto ids = ParseEmbed(R"({"inputs": [1, 2]})");
  ASSERT_EQ(ids->request.inputs_size(), 1);
  EXPECT_EQ(ids->request.inputs(0).tokens().ids(1), 2);
  const auto mixed = ParseEmbed(R"({"inputs": ["a", [3, 4, 5], "b"]})");
  ASSERT_EQ(mixed->request.inputs_size(), 3);
  EXPECT_EQ(mixed->request.inputs(1).tokens().ids_size(), 3);
  EXPECT_EQ(mixed->request.inputs(2).text(), "b");
  // Too few, which the handlers say.
  EXPECT_EQ(ParseEmbed(R"({"inputs": []})")->request.inputs_size(), 0);
}

TEST(ParseEmbedTest, ReadsEveryField) {
  const auto call = ParseEmbed(R"({"inputs": "a", "normalize": false, "truncate": true,
      "truncation_direction": "right", "prompt_name": null, "dimensions": 8,
      "encoding_format": "float", "model": "m"})");
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_TRUE(call->request.has_normalize());
  EXPECT_FALSE(call->request.normalize());
  EXPECT_TRUE(call->request.truncate().enabled());
  EXPECT_EQ(call->dimensions, 8);
  EXPECT_FALSE(ParseEmbed(R"({"inputs": "a"})")->request.has_normalize());
}

TEST(ParseEmbeddingsTest, ReadsEveryField) {
  const auto call = ParseEmbeddings(R"({"input": ["a", "b"], "model": "m", "user": "u",
      "encoding_format": "base64", "dimensions": 8})");
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->request.inputs_size(), 2);
  EXPECT_EQ(call->request.model(), "m");
  EXPECT_TRUE(call->base64);
  EXPECT_EQ(call->dimensions, 8);
  EXPECT_EQ(ParseEmbeddings(R"({"input": [[1], [2, 3]]})")->request.inputs_size(), 2);
  EXPECT_FALSE(ParseEmbeddings(R"({"input": "a"})")->base64);
}

TEST(ParseFillMaskTest, ReadsEveryField) {
  const auto call =
      ParseFillMask(R"({"inputs": "a [MASK]", "parameters": {"top_k": 3, "targets": ["b", "c"]}})");
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->request.inputs(0).text(), "a [MASK]");
  EXPECT_EQ(call->request.top_k(), 3);
  EXPECT_EQ(call->request.targets_size(), 2);
  EXPECT_FALSE(call->batch);
  EXPECT_FALSE(ParseFillMask(R"({"inputs": "a"})")->request.has_top_k());
  EXPECT_FALSE(ParseFillMask(R"({"inputs": ["a"]})")->batch);
  EXPECT_TRUE(ParseFillMask(R"({"inputs": ["a", "b"]})")->batch);
}

TEST(ParseTokenClassificationTest, ReadsEveryField) {
  struct Row {
    const char* name;
    v1::Aggregation expected;
  };
  for (const Row& row :
       {Row{"none", v1::AGGREGATION_NONE}, Row{"simple", v1::AGGREGATION_SIMPLE},
        Row{"first", v1::AGGREGATION_FIRST}, Row{"average", v1::AGGREGATION_AVERAGE},
        Row{"max", v1::AGGREGATION_MAX}}) {
    const auto call = ParseTokenClassification(
        std::string(R"({"inputs": "a", "parameters": {"ignore_labels": ["O"], "stride": null,
                        "aggregation_strategy": ")") +
        row.name + "\"}}");
    ASSERT_TRUE(call.ok()) << call.status();
    EXPECT_EQ(call->request.aggregation(), row.expected);
    EXPECT_FALSE(call->batch);
  }
  EXPECT_EQ(ParseTokenClassification(R"({"inputs": "a"})")->request.aggregation(),
            v1::AGGREGATION_UNSPECIFIED);
  EXPECT_TRUE(ParseTokenClassification(R"({"inputs": ["a"]})")->batch);
}

TEST(ParseQuestionAnsweringTest, ReadsEveryField) {
  const auto call = ParseQuestionAnswering(R"({"model": "m",
      "inputs": {"question": "q", "context": "c"},
      "parameters": {"top_k": 2, "doc_stride": 16, "max_answer_len": 5, "align_to_words": false,
                     "handle_impossible_answer": true, "max_seq_len": null}})");
  ASSERT_TRUE(call.ok()) << call.status();
  const v1::AnswerQuestionRequest& request = call->request;
  EXPECT_EQ(request.model(), "m");
  ASSERT_EQ(request.questions_size(), 1);
  EXPECT_EQ(request.questions(0).question(), "q");
  EXPECT_EQ(request.questions(0).context(), "c");
  EXPECT_EQ(request.top_k(), 2);
  EXPECT_EQ(request.stride(), 16);
  EXPECT_EQ(request.max_answer_tokens(), 5);
  EXPECT_TRUE(request.allow_no_answer());
  EXPECT_FALSE(call->batch);
}

TEST(ParseQuestionAnsweringTest, ABatchIsAListOfSeveral) {
  const std::string question = R"({"question": "q", "context": "c"})";
  const auto one = ParseQuestionAnswering(R"({"inputs": [)" + question + "]}");
  EXPECT_EQ(one->request.questions_size(), 1);
  EXPECT_FALSE(one->batch);
  EXPECT_FALSE(one->request.has_top_k() || one->request.has_stride());
  const auto two = ParseQuestionAnswering(R"({"inputs": [)" + question + "," + question + "]}");
  EXPECT_EQ(two->request.questions_size(), 2);
  EXPECT_TRUE(two->batch);
}

// ---- Errors

using Parse = std::function<absl::Status(const std::string& body)>;

const Parse kPredict = [](const std::string& body) { return ParsePredict(body).status(); };
const Parse kEmbed = [](const std::string& body) { return ParseEmbed(body).status(); };
const Parse kEmbeddings = [](const std::string& body) { return ParseEmbeddings(body).status(); };
const Parse kFillMask = [](const std::string& body) { return ParseFillMask(body).status(); };
const Parse kTagging = [](const std::string& body) {
  return ParseTokenClassification(body).status();
};
const Parse kAnswering = [](const std::string& body) {
  return ParseQuestionAnswering(body).status();
};

struct BadField {
  const Parse& parse;
  const char* field;
  const char* member;  // added to a good body, where the last of equal names counts
};

TEST(ParseEncodingTest, ABadFieldIsNamed) {
  const BadField rows[] = {
      {kPredict, "inputs", R"("inputs": null)"},
      {kPredict, "inputs", R"("inputs": 5)"},
      {kPredict, "inputs", R"("inputs": {})"},
      {kPredict, "inputs", R"("inputs": [])"},
      {kPredict, "inputs", R"("inputs": [5])"},
      {kPredict, "inputs", R"("inputs": ["a", 5])"},
      {kPredict, "inputs", R"("inputs": ["a", ["b"]])"},
      {kPredict, "inputs", R"("inputs": ["a", "b", "c"])"},
      {kPredict, "inputs", R"("inputs": [[]])"},
      {kPredict, "inputs", R"("inputs": [["a"], "b"])"},
      {kPredict, "inputs", R"("inputs": [["a", "b", "c"]])"},
      {kPredict, "inputs", R"("inputs": [["a", null]])"},
      {kPredict, "parameters", R"("parameters": [])"},
      {kPredict, "truncate", R"("truncate": "yes")"},
      {kPredict, "truncation_direction", R"("truncation_direction": "up")"},
      {kPredict, "truncation_direction", R"("truncation_direction": 1)"},
      {kPredict, "raw_scores", R"("raw_scores": 1)"},
      {kPredict, "top_k", R"("top_k": 0)"},
      {kPredict, "top_k", R"("parameters": {"top_k": 1.5})"},
      {kPredict, "function_to_apply", R"("function_to_apply": "relu")"},
      {kPredict, "function_to_apply", R"("parameters": {"function_to_apply": true})"},
      {kPredict, "model", R"("model": 1)"},
      {kEmbed, "inputs", R"("inputs": 5)"},
      {kEmbed, "inputs", R"("inputs": [1, "a"])"},
      {kEmbed, "inputs", R"("inputs": ["a", 1])"},
      {kEmbed, "inputs", R"("inputs": [[1.5]])"},
      {kEmbed, "inputs", R"("inputs": [[[1]]])"},
      {kEmbed, "inputs", R"("inputs": [-1])"},
      {kEmbed, "inputs", R"("inputs": [[4294967296]])"},
      {kEmbed, "normalize", R"("normalize": "no")"},
      {kEmbed, "prompt_name", R"("prompt_name": "query")"},
      {kEmbed, "dimensions", R"("dimensions": "8")"},
      {kEmbed, "encoding_format", R"("encoding_format": "base64")"},
      {kEmbeddings, "input", R"("input": null)"},
      {kEmbeddings, "input", R"("input": {"a": 1})"},
      {kEmbeddings, "input", R"("input": [null])"},
      {kEmbeddings, "encoding_format", R"("encoding_format": "int8")"},
      {kEmbeddings, "encoding_format", R"("encoding_format": 1)"},
      {kEmbeddings, "dimensions", R"("dimensions": 1.5)"},
      {kEmbeddings, "truncate", R"("truncate": true)"},
      {kPredict, "top_k", R"("top_k": 1, "parameters": {"top_k": 2})"},
      {kPredict, "return_all_scores", R"("parameters": {"return_all_scores": true})"},
      {kEmbed, "inputz", R"("inputz": 1)"},
      {kFillMask, "tokenizer_kwargs", R"("tokenizer_kwargs": {})"},
      {kTagging, "top_k", R"("top_k": 1)"},
      {kAnswering, "id", R"("inputs": {"question": "q", "context": "c", "id": 1})"},
      {kFillMask, "inputs", R"("inputs": [1])"},
      {kFillMask, "inputs", R"("inputs": [["a"]])"},
      {kFillMask, "top_k", R"("top_k": "5")"},
      {kFillMask, "top_k", R"("top_k": 9223372036854775808)"},
      {kFillMask, "targets", R"("targets": "a")"},
      {kFillMask, "targets", R"("parameters": {"targets": ["a", 1]})"},
      {kTagging, "inputs", R"("inputs": {"text": "a"})"},
      {kTagging, "aggregation_strategy", R"("aggregation_strategy": "last")"},
      {kTagging, "aggregation_strategy", R"("aggregation_strategy": 1)"},
      {kTagging, "stride", R"("stride": 0)"},
      {kTagging, "ignore_labels", R"("ignore_labels": [])"},
      {kTagging, "ignore_labels", R"("ignore_labels": ["O", "B-PER"])"},
      {kAnswering, "inputs", R"("inputs": "a")"},
      {kAnswering, "inputs", R"("inputs": ["a"])"},
      {kAnswering, "question", R"("inputs": {"context": "c"})"},
      {kAnswering, "question", R"("inputs": {"question": 1, "context": "c"})"},
      {kAnswering, "context", R"("inputs": [{"question": "q", "context": null}])"},
      {kAnswering, "context", R"("inputs": [{"question": "q", "context": ["c"]}])"},
      {kAnswering, "top_k", R"("top_k": true)"},
      {kAnswering, "doc_stride", R"("doc_stride": "x")"},
      {kAnswering, "max_answer_len", R"("max_answer_len": 1.5)"},
      {kAnswering, "handle_impossible_answer", R"("handle_impossible_answer": 1)"},
      {kAnswering, "align_to_words", R"("align_to_words": true)"},
      {kAnswering, "max_seq_len", R"("max_seq_len": 384)"},
      {kAnswering, "max_question_len", R"("max_question_len": 64)"},
  };
  for (const BadField& row : rows) {
    const std::string member = row.member;
    const bool answering = &row.parse == &kAnswering;
    std::string inputs = &row.parse == &kEmbeddings ? R"("input": "a", )" : R"("inputs": "a", )";
    if (answering) inputs = R"("inputs": {"question": "q", "context": "c"}, )";
    if (member.starts_with("\"input")) inputs.clear();
    const std::string body = "{" + inputs + member + "}";
    const absl::Status status = row.parse(body);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << body;
    EXPECT_EQ(Field(status), row.field) << body << ": " << status;
  }
}

TEST(ParseEncodingTest, WhatIsNoObjectOrHasNoInputsIsRefused) {
  for (const Parse* parse :
       {&kPredict, &kEmbed, &kEmbeddings, &kFillMask, &kTagging, &kAnswering}) {
    for (const std::string& body :
         {std::string(), std::string("{"), std::string("[]"), std::string("\"a\""),
          std::string(1000000, '['), std::string("{\"inputs\": \"\xff\", \"input\": \"\xff\"}")}) {
      const absl::Status status = (*parse)(body);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << body.substr(0, 20);
      EXPECT_EQ(Field(status), "") << body.substr(0, 20);
    }
    EXPECT_EQ(Field((*parse)("{}")), parse == &kEmbeddings ? "input" : "inputs");
  }
}

}  // namespace
}  // namespace hippodrome::json_encoding_requests_test
