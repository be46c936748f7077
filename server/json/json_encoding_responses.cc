#include "server/json/json_encoding_responses.h"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/escaping.h"
#include "engine/tasks/label_scores.h"
#include "server/version.h"

namespace hippodrome {
namespace {

// Keeps the order in which fields are written, and the numbers as floats.
using FloatJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                       int64_t, uint64_t, float>;

std::string DumpAnswer(const FloatJson& json) {
  return json.dump(-1, ' ', false, FloatJson::error_handler_t::replace);
}

// The list of what `make` makes of each item.
template <typename Items, typename Make>
FloatJson List(const Items& items, const Make& make) {
  FloatJson list = FloatJson::array();
  for (const auto& item : items) list.push_back(make(item));
  return list;
}

std::vector<float> Apply(PredictCall::Function function, std::vector<float> scores) {
  if (function == PredictCall::Function::kSoftmax) return Softmax(scores);
  if (function == PredictCall::Function::kSigmoid) {
    for (float& score : scores) score = LabelScores({&score, 1}).front();
  }
  return scores;
}

FloatJson Prediction(const PredictCall& call, const v1::ClassifyResponse::Result& result) {
  std::vector<float> scores;
  for (const auto& score : result.scores()) scores.push_back(score.score());
  // Both functions rise, so the order stays.
  scores = Apply(call.function, std::move(scores));
  const auto size = static_cast<int64_t>(scores.size());
  const int64_t count = std::min(size, call.top_k.value_or(size));
  FloatJson labels = FloatJson::array();
  for (int i = 0; i < count; ++i) {
    labels.push_back({{"label", result.scores(i).label()}, {"score", scores[i]}});
  }
  return labels;
}

std::string Base64(const google::protobuf::RepeatedField<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  return absl::Base64Escape({reinterpret_cast<const char*>(values.data()),
                             static_cast<size_t>(values.size()) * sizeof(float)});
}

FloatJson Candidates(const v1::FillMaskResponse::Mask& mask) {
  return List(mask.candidates(), [](const v1::FillMaskResponse::Candidate& candidate) {
    return FloatJson{{"score", candidate.score()},
                     {"token", candidate.token_id()},
                     {"token_str", candidate.token()},
                     {"sequence", candidate.sequence()}};
  });
}

FloatJson Masks(const v1::FillMaskResponse::Result& result) {
  return result.masks_size() == 1 ? Candidates(result.masks(0)) : List(result.masks(), Candidates);
}

FloatJson Group(const v1::TagTokensResponse::Entity& entity) {
  return {{"entity_group", entity.label()},
          {"score", entity.score()},
          {"word", entity.word()},
          {"start", entity.start()},
          {"end", entity.end()}};
}

FloatJson Token(const v1::TagTokensResponse::Entity& entity) {
  return {{"entity", entity.label()}, {"score", entity.score()}, {"index", entity.index()},
          {"word", entity.word()},    {"start", entity.start()}, {"end", entity.end()}};
}

FloatJson AnswerJson(const v1::AnswerQuestionResponse::Answer& answer) {
  return {{"score", answer.score()},
          {"start", answer.start()},
          {"end", answer.end()},
          {"answer", answer.text()}};
}

FloatJson Labels(const v1::Model& model) {
  std::map<std::string, std::string> id2label;
  std::map<std::string, int> label2id;
  for (int i = 0; i < model.labels_size(); ++i) {
    id2label[std::to_string(i)] = model.labels(i);
    label2id[model.labels(i)] = i;
  }
  return {{"id2label", id2label}, {"label2id", label2id}};
}

// TEI calls a classifier with one label a reranker.
FloatJson ModelType(const v1::Model& model) {
  if (model.head() == "sequence_classification") {
    return {{model.labels_size() == 1 ? "reranker" : "classifier", Labels(model)}};
  }
  if (model.embedding_size() > 0) return {{"embedding", {{"pooling", "mean"}}}};
  return nullptr;
}

// As PyTorch calls it.
const char* DtypeName(const std::string& weights) {
  if (weights.starts_with("int")) return weights.c_str();
  return weights == "bf16" ? "bfloat16" : "float32";
}

}  // namespace

std::string PredictBody(const PredictCall& call, const v1::ClassifyResponse& response) {
  const auto prediction = [&](const auto& result) { return Prediction(call, result); };
  return DumpAnswer(call.nested ? List(response.results(), prediction)
                                : prediction(response.results(0)));
}

std::string EmbedBody(const v1::EmbedResponse& response) {
  return DumpAnswer(List(response.embeddings(), [](const v1::EmbedResponse::Embedding& embedding) {
    return FloatJson(embedding.values());
  }));
}

// Embedding by embedding, for a tree of them would take some times the memory.
std::string EmbedAllBody(const v1::EmbedResponse& response) {
  std::string body = "[";
  int next = 0;
  for (const int64_t tokens : response.tokens()) {
    body += body.size() > 1 ? ",[" : "[";
    for (int64_t t = 0; t < tokens; ++t) {
      if (t > 0) body += ",";
      body += DumpAnswer(FloatJson(response.embeddings(next++).values()));
    }
    body += "]";
  }
  return body + "]";
}

std::string EmbeddingsBody(const EmbedCall& call, const v1::EmbedResponse& response) {
  FloatJson data = FloatJson::array();
  for (const v1::EmbedResponse::Embedding& embedding : response.embeddings()) {
    const auto& values = embedding.values();
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", call.base64 ? FloatJson(Base64(values)) : FloatJson(values)}});
  }
  const int64_t tokens = response.usage().tokens();
  return DumpAnswer({{"object", "list"},
                     {"data", data},
                     {"model", call.request.model()},
                     {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

std::string FillMaskBody(const FillMaskCall& call, const v1::FillMaskResponse& response) {
  return DumpAnswer(call.batch ? List(response.results(), Masks) : Masks(response.results(0)));
}

std::string TokenClassificationBody(const TokenClassificationCall& call,
                                    const v1::TagTokensResponse& response) {
  const bool by_token = call.request.aggregation() == v1::AGGREGATION_NONE;
  const auto entities = [&](const v1::TagTokensResponse::Result& result) {
    return List(result.entities(), by_token ? Token : Group);
  };
  return DumpAnswer(call.batch ? List(response.results(), entities)
                               : entities(response.results(0)));
}

std::string QuestionAnsweringBody(const QuestionAnsweringCall& call,
                                  const v1::AnswerQuestionResponse& response) {
  const bool several = call.request.has_top_k() && call.request.top_k() > 1;
  const auto answers = [&](const v1::AnswerQuestionResponse::Result& result) {
    if (several) return List(result.answers(), AnswerJson);
    // An empty context has no answer, which is the empty one at 0.
    return result.answers().empty() ? AnswerJson({}) : AnswerJson(result.answers(0));
  };
  return DumpAnswer(call.batch ? List(response.results(), answers) : answers(response.results(0)));
}

std::string InfoBody(const v1::Model& model, const RequestLimits& limits, const HttpOptions& http) {
  return DumpAnswer({{"model_id", model.name()},
                     {"model_sha", nullptr},
                     {"model_dtype", DtypeName(model.weights())},
                     {"model_type", ModelType(model)},
                     {"max_concurrent_requests", http.max_connections},
                     {"max_input_length", model.max_positions()},
                     {"max_batch_tokens", model.max_batch_tokens()},
                     {"max_batch_requests", nullptr},
                     {"max_client_batch_size", limits.max_inputs},
                     {"auto_truncate", false},
                     {"tokenization_workers", http.threads},
                     {"version", Version()},
                     {"sha", nullptr},
                     {"docker_label", nullptr}});
}

}  // namespace hippodrome
