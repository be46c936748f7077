#include "server/handlers/inference_handlers.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/handlers/inference_outputs.h"
#include "server/handlers/inference_parameters.h"
#include "server/handlers/tensor_contents.h"
#include "server/version.h"

namespace hippodrome {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using InferenceAnswer = PendingAnswer<ModelInferResponse>;

// ---- Inputs -------------------------------------------------------------------------------------

absl::Status CheckInputNames(const ModelInferRequest& request,
                             const inference::ModelMetadataResponse& metadata) {
  for (int i = 0; i < request.inputs_size(); ++i) {
    const std::string& name = request.inputs(i).name();
    for (const auto& [parameter, value] : request.inputs(i).parameters()) {
      return FieldError(parameter, "inputs have no such parameter");
    }
    const bool known = std::any_of(metadata.inputs().begin(), metadata.inputs().end(),
                                   [&](const auto& input) { return input.name() == name; });
    if (!known) return FieldError("inputs", "this model has no input '" + name + "'");
    for (int k = 0; k < i; ++k) {
      if (request.inputs(k).name() == name) return FieldError(name, "it is there twice");
    }
  }
  return absl::OkStatus();
}

// The texts of the input `name`; nothing where it is absent.
absl::StatusOr<std::optional<std::vector<std::string>>> FindTexts(const ModelInferRequest& request,
                                                                  const char* name, int64_t most) {
  for (int i = 0; i < request.inputs_size(); ++i) {
    if (request.inputs(i).name() != name) continue;
    HIPPODROME_ASSIGN_OR_RETURN(std::vector<std::string> texts, ReadTexts(request, i, most));
    return texts;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<std::string>> NeedTexts(const ModelInferRequest& request,
                                                   const char* name, int64_t most) {
  HIPPODROME_ASSIGN_OR_RETURN(auto texts, FindTexts(request, name, most));
  if (!texts) return FieldError(name, "this input is missing");
  return *std::move(texts);
}

// "text", and "text_pair" with as many, to the inputs of a request to an encoder.
template <typename Request>
absl::Status ReadInputs(const ModelInferRequest& from, int64_t most, Request& request) {
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<std::string> texts, NeedTexts(from, "text", most));
  HIPPODROME_ASSIGN_OR_RETURN(auto pairs, FindTexts(from, "text_pair", most));
  if (pairs && pairs->size() != texts.size()) {
    return FieldError("text_pair", "there are " + std::to_string(pairs->size()) +
                                       ", but text has " + std::to_string(texts.size()));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    v1::EncodingInput& input = *request.add_inputs();
    if (pairs) {
      input.mutable_pair()->set_first(std::move(texts[i]));
      input.mutable_pair()->set_second(std::move((*pairs)[i]));
    } else {
      input.set_text(std::move(texts[i]));
    }
  }
  return absl::OkStatus();
}

// ---- Outputs ------------------------------------------------------------------------------------

absl::Status CheckOutputNames(const ModelInferRequest& request,
                              const inference::ModelMetadataResponse& metadata) {
  for (const auto& output : request.outputs()) {
    for (const auto& [parameter, value] : output.parameters()) {
      return FieldError(parameter, "outputs have no such parameter");
    }
    const bool known =
        std::any_of(metadata.outputs().begin(), metadata.outputs().end(),
                    [&](const auto& given) { return given.name() == output.name(); });
    if (!known) {
      return FieldError("outputs", "this model has no output '" + output.name() + "'");
    }
  }
  return absl::OkStatus();
}

// Whether the embedding is wanted, which is computed apart from what heads give.
absl::StatusOr<bool> WantsEmbedding(const ModelInferRequest& request, const v1::Model& model) {
  if (model.head() == "none") return true;
  const auto is_embedding = [](const auto& output) { return output.name() == "embedding"; };
  const auto count =
      std::count_if(request.outputs().begin(), request.outputs().end(), is_embedding);
  if (count == 0) return false;
  if (count == request.outputs_size()) return true;
  return FieldError("outputs", "embedding cannot be asked for together with others");
}

// What a response needs of its request.
struct Wanted {
  explicit Wanted(const ModelInferRequest& request)
      : id(request.id()), outputs(request.outputs()), raw(request.raw_input_contents_size() > 0) {}

  std::string id;
  google::protobuf::RepeatedPtrField<ModelInferRequest::InferRequestedOutputTensor> outputs;
  bool raw;
};

// The outputs that were asked for, in that order, with what every response says.
ModelInferResponse Select(ModelInferResponse all, const Wanted& wanted, const std::string& model) {
  ModelInferResponse response;
  for (const auto& name : wanted.outputs) {
    for (const auto& output : all.outputs()) {
      if (output.name() == name.name()) *response.add_outputs() = output;
    }
  }
  if (wanted.outputs.empty()) response = std::move(all);
  if (wanted.raw) MakeRaw(response);
  response.set_model_name(model);
  response.set_model_version(kModelVersion);
  response.set_id(wanted.id);
  return response;
}

// ---- Answers ------------------------------------------------------------------------------------

// An encoder's answer, made tensors of.
template <typename Response>
class TensorAnswer : public InferenceAnswer {
 public:
  using Convert = std::function<ModelInferResponse(const Response& response)>;

  TensorAnswer(std::unique_ptr<PendingAnswer<Response>> answer, Wanted wanted, Convert convert)
      : InferenceAnswer(answer->model()),
        answer_(std::move(answer)),
        wanted_(std::move(wanted)),
        convert_(std::move(convert)) {}

  void OnReady(std::function<void()> wake) override { answer_->OnReady(std::move(wake)); }
  std::optional<absl::StatusOr<ModelInferResponse>> Take() override {
    const std::optional<absl::StatusOr<Response>> answer = answer_->Take();
    if (!answer) return std::nullopt;
    if (!answer->ok()) return answer->status();
    return Select(convert_(**answer), wanted_, model());
  }

 private:
  const std::unique_ptr<PendingAnswer<Response>> answer_;
  const Wanted wanted_;
  const Convert convert_;
};

template <typename Response>
Answer<ModelInferResponse> Tensors(Answer<Response> answer, const ModelInferRequest& request,
                                   typename TensorAnswer<Response>::Convert convert) {
  if (!answer.ok()) return answer.status();
  return std::make_unique<TensorAnswer<Response>>(*std::move(answer), Wanted(request),
                                                  std::move(convert));
}

// A decoder's text, once it is whole.
class TextAnswer : public InferenceAnswer {
 public:
  TextAnswer(const std::string& model, std::unique_ptr<Generation> generation, Wanted wanted)
      : InferenceAnswer(model), generation_(std::move(generation)), wanted_(std::move(wanted)) {}

  void OnReady(std::function<void()> wake) override {
    generation_->OnUpdate(std::move(wake), kTokensPerWake);
  }
  std::optional<absl::StatusOr<ModelInferResponse>> Take() override {
    while (std::optional<StreamUpdate> update = generation_->Take()) {
      if (!update->status.ok()) return update->status;
      text_ += update->text;
      if (update->last()) return Select(TextTensor(text_), wanted_, model());
    }
    return std::nullopt;
  }

 private:
  // Nobody sees them before the last one.
  static constexpr int64_t kTokensPerWake = 64;

  const std::unique_ptr<Generation> generation_;
  const Wanted wanted_;
  std::string text_;
};

// ---- One task each ------------------------------------------------------------------------------

// A request to one of the encoders' handlers, as `fill` completes it.
struct EncoderCall {
  EncodingHandlers& handlers;
  const ModelInferRequest& request;
  const v1::Model& model;
  const EncoderParameters& parameters;
  const Caller& caller;
  int64_t most;  // inputs

  template <typename Request>
  absl::StatusOr<Request> Begin() const {
    Request result;
    result.set_model(model.name());
    *result.mutable_truncate() = parameters.truncate;
    HIPPODROME_RETURN_IF_ERROR(ReadInputs(request, most, result));
    return result;
  }
};

Answer<ModelInferResponse> Embed(const EncoderCall& call) {
  HIPPODROME_RETURN_IF_ERROR(
      RefuseOtherParameters(call.request, {"truncate", "truncation_direction", "normalize"}));
  HIPPODROME_ASSIGN_OR_RETURN(auto request, call.Begin<v1::EmbedRequest>());
  request.set_normalize(call.parameters.normalize);
  return Tensors<v1::EmbedResponse>(call.handlers.Embed(request, call.caller), call.request,
                                    EmbeddingTensors);
}

Answer<ModelInferResponse> Classify(const EncoderCall& call) {
  HIPPODROME_RETURN_IF_ERROR(
      RefuseOtherParameters(call.request, {"truncate", "truncation_direction", "raw_scores"}));
  HIPPODROME_ASSIGN_OR_RETURN(auto request, call.Begin<v1::ClassifyRequest>());
  request.set_raw_scores(call.parameters.raw_scores);
  return Tensors<v1::ClassifyResponse>(
      call.handlers.Classify(request, call.caller), call.request,
      [model = call.model](const auto& response) { return ScoreTensors(model, response); });
}

Answer<ModelInferResponse> TagTokens(const EncoderCall& call) {
  HIPPODROME_RETURN_IF_ERROR(
      RefuseOtherParameters(call.request, {"truncate", "truncation_direction"}));
  HIPPODROME_ASSIGN_OR_RETURN(auto request, call.Begin<v1::TagTokensRequest>());
  return Tensors<v1::TagTokensResponse>(call.handlers.TagTokens(request, call.caller), call.request,
                                        EntityTensors);
}

Answer<ModelInferResponse> FillMask(const EncoderCall& call) {
  HIPPODROME_RETURN_IF_ERROR(
      RefuseOtherParameters(call.request, {"truncate", "truncation_direction", "top_k"}));
  HIPPODROME_ASSIGN_OR_RETURN(auto request, call.Begin<v1::FillMaskRequest>());
  if (call.parameters.top_k) request.set_top_k(*call.parameters.top_k);
  return Tensors<v1::FillMaskResponse>(call.handlers.FillMask(request, call.caller), call.request,
                                       CandidateTensors);
}

Answer<ModelInferResponse> AnswerQuestion(const EncoderCall& call) {
  HIPPODROME_RETURN_IF_ERROR(RefuseOtherParameters(call.request, {}));
  HIPPODROME_ASSIGN_OR_RETURN(const auto questions, NeedTexts(call.request, "question", call.most));
  HIPPODROME_ASSIGN_OR_RETURN(const auto contexts, NeedTexts(call.request, "context", call.most));
  if (questions.size() != contexts.size()) {
    return FieldError("context", "there are " + std::to_string(contexts.size()) +
                                     ", but question has " + std::to_string(questions.size()));
  }
  v1::AnswerQuestionRequest request;
  request.set_model(call.model.name());
  for (size_t i = 0; i < questions.size(); ++i) {
    v1::AnswerQuestionRequest::Question& question = *request.add_questions();
    question.set_question(questions[i]);
    question.set_context(contexts[i]);
  }
  return Tensors<v1::AnswerQuestionResponse>(call.handlers.AnswerQuestion(request, call.caller),
                                             call.request, AnswerTensors);
}

Answer<ModelInferResponse> Encode(const EncoderCall& call) {
  HIPPODROME_ASSIGN_OR_RETURN(const bool embedding, WantsEmbedding(call.request, call.model));
  const std::string& head = call.model.head();
  if (embedding) return Embed(call);
  if (head == "token_classification") return TagTokens(call);
  if (head == "masked_lm") return FillMask(call);
  if (head == "question_answering") return AnswerQuestion(call);
  return Classify(call);
}

}  // namespace

absl::StatusOr<v1::Model> InferenceHandlers::FindModel(const std::string& name,
                                                       const std::string& version) const {
  if (name.empty()) return FieldError("model_name", "it is missing");
  HIPPODROME_ASSIGN_OR_RETURN(v1::Model model, handlers_.GetModel(name));
  if (version.empty() || version == kModelVersion) return model;
  return NotFound("model '" + name + "' has no version '" + version + "': there is '" +
                  kModelVersion + "' alone");
}

absl::Status InferenceHandlers::ModelReady(const std::string& name,
                                           const std::string& version) const {
  HIPPODROME_RETURN_IF_ERROR(FindModel(name, version).status());
  return handlers_.Ready();
}

inference::ServerMetadataResponse InferenceHandlers::ServerMetadata() const {
  inference::ServerMetadataResponse metadata;
  metadata.set_name("hippodrome");
  metadata.set_version(Version());
  metadata.add_extensions("binary_tensor_data");
  metadata.add_extensions("generate");
  return metadata;
}

absl::StatusOr<inference::ModelMetadataResponse> InferenceHandlers::ModelMetadata(
    const std::string& name, const std::string& version) const {
  HIPPODROME_ASSIGN_OR_RETURN(const v1::Model model, FindModel(name, version));
  inference::ModelMetadataResponse metadata = DescribeTensors(model);
  metadata.add_versions(kModelVersion);
  return metadata;
}

absl::StatusOr<v1::GenerateRequest> InferenceHandlers::ToGenerate(
    const ModelInferRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const v1::Model model,
                              FindModel(request.model_name(), request.model_version()));
  if (!model.head().empty()) {
    return FailedPrecondition("model '" + model.name() +
                              "' is an encoder: it does not generate text");
  }
  const inference::ModelMetadataResponse metadata = DescribeTensors(model);
  HIPPODROME_RETURN_IF_ERROR(CheckInputNames(request, metadata));
  HIPPODROME_RETURN_IF_ERROR(CheckOutputNames(request, metadata));
  HIPPODROME_ASSIGN_OR_RETURN(v1::GenerateRequest result, ReadGenerateParameters(request));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<std::string> texts, NeedTexts(request, "text_input", 1));
  if (texts.empty()) return FieldError("text_input", "expected one text");
  result.set_model(model.name());
  result.set_text(std::move(texts.front()));
  return result;
}

Answer<ModelInferResponse> InferenceHandlers::Generate(const ModelInferRequest& request,
                                                       const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(const v1::GenerateRequest generate, ToGenerate(request));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Generation> generation,
                              handlers_.Generate(generate, caller));
  return std::make_unique<TextAnswer>(generate.model(), std::move(generation), Wanted(request));
}

Answer<ModelInferResponse> InferenceHandlers::Infer(const ModelInferRequest& request,
                                                    const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(const v1::Model model,
                              FindModel(request.model_name(), request.model_version()));
  if (model.head().empty()) return Generate(request, caller);
  const inference::ModelMetadataResponse metadata = DescribeTensors(model);
  HIPPODROME_RETURN_IF_ERROR(CheckInputNames(request, metadata));
  HIPPODROME_RETURN_IF_ERROR(CheckOutputNames(request, metadata));
  HIPPODROME_ASSIGN_OR_RETURN(const EncoderParameters parameters, ReadEncoderParameters(request));
  return Encode(
      {handlers_.encoding(), request, model, parameters, caller, handlers_.limits().max_inputs});
}

}  // namespace hippodrome
