#include "server/handlers/inference_outputs.h"

#include <initializer_list>

namespace hippodrome {
namespace {

using inference::ModelInferResponse;
using inference::ModelMetadataResponse;
using TensorList = google::protobuf::RepeatedPtrField<ModelMetadataResponse::TensorMetadata>;

void Describe(TensorList& tensors, const char* name, const char* datatype,
              std::initializer_list<int64_t> shape) {
  ModelMetadataResponse::TensorMetadata& tensor = *tensors.Add();
  tensor.set_name(name);
  tensor.set_datatype(datatype);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
}

inference::InferTensorContents& Add(ModelInferResponse& response, const char* name,
                                    const char* datatype, std::initializer_list<int64_t> shape) {
  ModelInferResponse::InferOutputTensor& tensor = *response.add_outputs();
  tensor.set_name(name);
  tensor.set_datatype(datatype);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  return *tensor.mutable_contents();
}

void DescribeHead(const v1::Model& model, ModelMetadataResponse& metadata) {
  TensorList& outputs = *metadata.mutable_outputs();
  const std::string& head = model.head();
  if (head == "sequence_classification") {
    Describe(outputs, "scores", "FP32", {-1, model.labels_size()});
    Describe(outputs, "labels", "BYTES", {model.labels_size()});
    Describe(outputs, "label", "BYTES", {-1});
  } else if (head == "multiple_choice") {
    Describe(outputs, "scores", "FP32", {-1});
  } else if (head == "token_classification") {
    Describe(outputs, "input", "INT32", {-1});
    Describe(outputs, "label", "BYTES", {-1});
    Describe(outputs, "score", "FP32", {-1});
    Describe(outputs, "word", "BYTES", {-1});
    Describe(outputs, "start", "INT64", {-1});
    Describe(outputs, "end", "INT64", {-1});
  } else if (head == "masked_lm") {
    Describe(outputs, "input", "INT32", {-1});
    Describe(outputs, "token", "BYTES", {-1, -1});
    Describe(outputs, "token_id", "INT32", {-1, -1});
    Describe(outputs, "score", "FP32", {-1, -1});
  } else if (head == "question_answering") {
    Describe(outputs, "answer", "BYTES", {-1});
    Describe(outputs, "score", "FP32", {-1});
    Describe(outputs, "start", "INT64", {-1});
    Describe(outputs, "end", "INT64", {-1});
    return;  // its inputs are questions, not texts to embed
  }
  Describe(outputs, "embedding", "FP32", {-1, model.embedding_size()});
}

void DescribeInputs(const v1::Model& model, ModelMetadataResponse& metadata) {
  TensorList& inputs = *metadata.mutable_inputs();
  if (model.head().empty()) {
    Describe(inputs, "text_input", "BYTES", {1});
  } else if (model.head() == "question_answering") {
    Describe(inputs, "question", "BYTES", {-1});
    Describe(inputs, "context", "BYTES", {-1});
  } else {
    Describe(inputs, "text", "BYTES", {-1});
    Describe(inputs, "text_pair", "BYTES", {-1});
  }
}

// Which label a score belongs to; the response has them best first.
int FindLabel(const v1::Model& model, const std::string& label) {
  for (int i = 0; i < model.labels_size(); ++i) {
    if (model.labels(i) == label) return i;
  }
  return 0;
}

}  // namespace

ModelMetadataResponse DescribeTensors(const v1::Model& model) {
  ModelMetadataResponse metadata;
  metadata.set_name(model.name());
  metadata.set_platform("hippodrome_" + model.architecture());
  DescribeInputs(model, metadata);
  if (model.head().empty()) {
    Describe(*metadata.mutable_outputs(), "text_output", "BYTES", {1});
  } else {
    DescribeHead(model, metadata);
  }
  return metadata;
}

ModelInferResponse ScoreTensors(const v1::Model& model, const v1::ClassifyResponse& response) {
  ModelInferResponse result;
  if (model.head() == "multiple_choice") {
    const auto& choices = response.results(0).scores();
    auto& scores = *Add(result, "scores", "FP32", {choices.size()}).mutable_fp32_contents();
    scores.Resize(choices.size(), 0);
    for (const auto& choice : choices) scores[std::stoi(choice.label())] = choice.score();
    return result;
  }
  const int64_t inputs = response.results_size();
  const int labels = model.labels_size();
  auto& scores = *Add(result, "scores", "FP32", {inputs, labels}).mutable_fp32_contents();
  scores.Resize(static_cast<int>(inputs) * labels, 0);
  auto& names = Add(result, "labels", "BYTES", {labels});
  for (const std::string& label : model.labels()) names.add_bytes_contents(label);
  auto& best = Add(result, "label", "BYTES", {inputs});
  for (int i = 0; i < response.results_size(); ++i) {
    const auto& sorted = response.results(i).scores();
    best.add_bytes_contents(sorted[0].label());
    for (const auto& score : sorted) {
      scores[i * labels + FindLabel(model, score.label())] = score.score();
    }
  }
  return result;
}

ModelInferResponse EmbeddingTensors(const v1::EmbedResponse& response) {
  ModelInferResponse result;
  auto& values = *Add(result, "embedding", "FP32",
                      {response.embeddings_size(), response.embeddings(0).values_size()})
                      .mutable_fp32_contents();
  for (const auto& embedding : response.embeddings()) values.MergeFrom(embedding.values());
  return result;
}

ModelInferResponse EntityTensors(const v1::TagTokensResponse& response) {
  int64_t entities = 0;
  for (const auto& input : response.results()) entities += input.entities_size();
  ModelInferResponse result;
  // The list does not move what it holds.
  auto& inputs = Add(result, "input", "INT32", {entities});
  auto& labels = Add(result, "label", "BYTES", {entities});
  auto& scores = Add(result, "score", "FP32", {entities});
  auto& words = Add(result, "word", "BYTES", {entities});
  auto& starts = Add(result, "start", "INT64", {entities});
  auto& ends = Add(result, "end", "INT64", {entities});
  for (int i = 0; i < response.results_size(); ++i) {
    for (const auto& entity : response.results(i).entities()) {
      inputs.add_int_contents(i);
      labels.add_bytes_contents(entity.label());
      scores.add_fp32_contents(entity.score());
      words.add_bytes_contents(entity.word());
      starts.add_int64_contents(entity.start());
      ends.add_int64_contents(entity.end());
    }
  }
  return result;
}

ModelInferResponse CandidateTensors(const v1::FillMaskResponse& response) {
  int64_t masks = 0;
  for (const auto& input : response.results()) masks += input.masks_size();
  // As many for each mask: the top_k of the call.
  const int64_t candidates = masks == 0 ? 0 : response.results(0).masks(0).candidates_size();
  ModelInferResponse result;
  auto& inputs = Add(result, "input", "INT32", {masks});
  auto& tokens = Add(result, "token", "BYTES", {masks, candidates});
  auto& ids = Add(result, "token_id", "INT32", {masks, candidates});
  auto& scores = Add(result, "score", "FP32", {masks, candidates});
  for (int i = 0; i < response.results_size(); ++i) {
    for (const auto& mask : response.results(i).masks()) {
      inputs.add_int_contents(i);
      for (const auto& candidate : mask.candidates()) {
        tokens.add_bytes_contents(candidate.token());
        ids.add_int_contents(candidate.token_id());
        scores.add_fp32_contents(candidate.score());
      }
    }
  }
  return result;
}

ModelInferResponse AnswerTensors(const v1::AnswerQuestionResponse& response) {
  const int64_t questions = response.results_size();
  ModelInferResponse result;
  auto& answers = Add(result, "answer", "BYTES", {questions});
  auto& scores = Add(result, "score", "FP32", {questions});
  auto& starts = Add(result, "start", "INT64", {questions});
  auto& ends = Add(result, "end", "INT64", {questions});
  for (const auto& question : response.results()) {
    // Without any candidate it is the empty one at 0.
    const auto best =
        question.answers().empty() ? v1::AnswerQuestionResponse::Answer() : question.answers(0);
    answers.add_bytes_contents(best.text());
    scores.add_fp32_contents(best.score());
    starts.add_int64_contents(best.start());
    ends.add_int64_contents(best.end());
  }
  return result;
}

ModelInferResponse TextTensor(const std::string& text) {
  ModelInferResponse result;
  Add(result, "text_output", "BYTES", {1}).add_bytes_contents(text);
  return result;
}

}  // namespace hippodrome
