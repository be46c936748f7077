#include "server/json/json_encoding_requests.h"

#include <utility>

#include "engine/base/status.h"
#include "server/json/json_fields.h"
#include "server/json/json_inputs.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

absl::Status RefuseAll(const Json& json, std::initializer_list<const char*> fields) {
  for (const char* field : fields) {
    if (Find(json, field) != nullptr) return Unsupported(field);
  }
  return absl::OkStatus();
}

absl::Status ReadFunction(const Json& json, PredictCall& call) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto function, TextField(json, "function_to_apply"));
  if (!function) return absl::OkStatus();
  if (*function == "softmax") {
    call.function = PredictCall::Function::kSoftmax;
  } else if (*function == "sigmoid") {
    call.function = PredictCall::Function::kSigmoid;
  } else if (*function != "none") {
    return FieldError("function_to_apply", "expected \"none\", \"softmax\" or \"sigmoid\"");
  }
  call.request.set_raw_scores(true);
  return absl::OkStatus();
}

absl::Status ReadEmbedding(const Json& json, const char* inputs, EmbedCall& call) {
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_ASSIGN_OR_RETURN(call.dimensions, IntegerField(json, "dimensions"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto format, TextField(json, "encoding_format"));
  call.base64 = format == "base64";
  if (format && !call.base64 && *format != "float") {
    return FieldError("encoding_format", "expected \"float\" or \"base64\"");
  }
  return ReadTextsOrIds(json, inputs, *call.request.mutable_inputs());
}

absl::Status ReadTargets(const Json& json, v1::FillMaskRequest& request) {
  const Json* targets = Find(json, "targets");
  if (targets == nullptr) return absl::OkStatus();
  if (!targets->is_array()) return WrongType("targets", "an array of strings", *targets);
  for (const Json& target : *targets) {
    if (!target.is_string()) return WrongType("targets", "strings", target);
    request.add_targets(target.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadAggregation(const Json& json, v1::TagTokensRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto strategy, TextField(json, "aggregation_strategy"));
  if (!strategy) return absl::OkStatus();
  for (const auto& [name, aggregation] :
       {std::pair("none", v1::AGGREGATION_NONE), std::pair("simple", v1::AGGREGATION_SIMPLE),
        std::pair("first", v1::AGGREGATION_FIRST), std::pair("average", v1::AGGREGATION_AVERAGE),
        std::pair("max", v1::AGGREGATION_MAX)}) {
    if (*strategy != name) continue;
    request.set_aggregation(aggregation);
    return absl::OkStatus();
  }
  return FieldError("aggregation_strategy",
                    "expected \"none\", \"simple\", \"first\", \"average\" or \"max\"");
}

// {"question": "a", "context": "b"}
absl::Status ReadQuestion(const Json& value, v1::AnswerQuestionRequest& request) {
  if (!value.is_object()) {
    return WrongType("inputs", "an object with \"question\" and \"context\"", value);
  }
  v1::AnswerQuestionRequest::Question& question = *request.add_questions();
  HIPPODROME_ASSIGN_OR_RETURN(auto text, TextField(value, "question"));
  if (!text) return FieldError("question", "it is missing");
  question.set_question(*std::move(text));
  HIPPODROME_ASSIGN_OR_RETURN(auto context, TextField(value, "context"));
  if (!context) return FieldError("context", "it is missing");
  question.set_context(*std::move(context));
  return absl::OkStatus();
}

absl::Status ReadAnswerParameters(const Json& json, v1::AnswerQuestionRequest& request) {
  HIPPODROME_RETURN_IF_ERROR(RefuseAll(json, {"max_seq_len", "max_question_len"}));
  HIPPODROME_ASSIGN_OR_RETURN(const auto align, BoolField(json, "align_to_words"));
  if (align.value_or(false)) return Unsupported("align_to_words");
  HIPPODROME_ASSIGN_OR_RETURN(const auto top_k, IntegerField(json, "top_k"));
  if (top_k) request.set_top_k(*top_k);
  HIPPODROME_ASSIGN_OR_RETURN(const auto stride, IntegerField(json, "doc_stride"));
  if (stride) request.set_stride(*stride);
  HIPPODROME_ASSIGN_OR_RETURN(const auto longest, IntegerField(json, "max_answer_len"));
  if (longest) request.set_max_answer_tokens(*longest);
  HIPPODROME_ASSIGN_OR_RETURN(const auto impossible, BoolField(json, "handle_impossible_answer"));
  request.set_allow_no_answer(impossible.value_or(false));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PredictCall> ParsePredict(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body));
  PredictCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto raw_scores, BoolField(json, "raw_scores"));
  call.request.set_raw_scores(raw_scores.value_or(false));
  HIPPODROME_RETURN_IF_ERROR(ReadFunction(json, call));
  HIPPODROME_ASSIGN_OR_RETURN(call.top_k, IntegerField(json, "top_k"));
  if (call.top_k && *call.top_k < 1) return FieldError("top_k", "expected at least 1");
  HIPPODROME_ASSIGN_OR_RETURN(const bool batch,
                              ReadTextsOrPairs(json, *call.request.mutable_inputs()));
  call.nested = batch || Find(json, "parameters") != nullptr;
  return call;
}

absl::StatusOr<EmbedCall> ParseEmbed(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body));
  HIPPODROME_RETURN_IF_ERROR(RefuseAll(json, {"prompt_name"}));
  EmbedCall call;
  HIPPODROME_RETURN_IF_ERROR(ReadEmbedding(json, "inputs", call));
  if (call.base64) return FieldError("encoding_format", "expected \"float\" on this path");
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto normalize, BoolField(json, "normalize"));
  if (normalize) call.request.set_normalize(*normalize);
  return call;
}

absl::StatusOr<EmbedCall> ParseEmbeddings(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  EmbedCall call;
  HIPPODROME_RETURN_IF_ERROR(ReadEmbedding(json, "input", call));
  return call;
}

absl::StatusOr<FillMaskCall> ParseFillMask(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body));
  FillMaskCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto top_k, IntegerField(json, "top_k"));
  if (top_k) call.request.set_top_k(*top_k);
  HIPPODROME_RETURN_IF_ERROR(ReadTargets(json, call.request));
  HIPPODROME_RETURN_IF_ERROR(ReadTexts(json, *call.request.mutable_inputs()).status());
  call.batch = call.request.inputs_size() > 1;
  return call;
}

absl::StatusOr<TokenClassificationCall> ParseTokenClassification(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body));
  HIPPODROME_RETURN_IF_ERROR(RefuseAll(json, {"stride"}));
  const Json* ignored = Find(json, "ignore_labels");
  if (ignored != nullptr && *ignored != Json::array({"O"})) return Unsupported("ignore_labels");
  TokenClassificationCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_RETURN_IF_ERROR(ReadAggregation(json, call.request));
  HIPPODROME_ASSIGN_OR_RETURN(call.batch, ReadTexts(json, *call.request.mutable_inputs()));
  return call;
}

absl::StatusOr<QuestionAnsweringCall> ParseQuestionAnswering(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body));
  QuestionAnsweringCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadAnswerParameters(json, call.request));
  HIPPODROME_ASSIGN_OR_RETURN(const Json* inputs, RequiredField(json, "inputs"));
  if (!inputs->is_array()) {
    HIPPODROME_RETURN_IF_ERROR(ReadQuestion(*inputs, call.request));
  } else {
    for (const Json& input : *inputs) {
      HIPPODROME_RETURN_IF_ERROR(ReadQuestion(input, call.request));
    }
  }
  call.batch = call.request.questions_size() > 1;
  return call;
}

}  // namespace hippodrome
