#include "server/json/tei_json.h"

#include <algorithm>
#include <iterator>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/json/json_encoding_requests.h"

namespace hippodrome {
namespace {

// Keeps the order in which fields are written, and the numbers as floats.
using TeiJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, int64_t,
                                     uint64_t, float>;

constexpr char kTexts[] = R"({"type": "array", "items": {"type": "string"}, "minItems": 1})";
constexpr RequestField kRerank[] = {
    {"query", kTextSchema, "", true},
    {"texts", kTexts, "", true},
    {"raw_scores", kFlagSchema, "logits instead of probabilities"},
    {"return_text", kFlagSchema, ""},
    {"truncate", kFlagSchema, "cut inputs that are too long"},
    {"truncation_direction", kSideSchema, "the end that is cut"},
    {"model", kTextSchema, "a classifier with one label; the first one by default"},
};

constexpr RequestField kSimilarity[] = {
    {"inputs", R"({"type": "object", "required": ["source_sentence", "sentences"], "properties": {
        "source_sentence": {"type": "string"},
        "sentences": {"type": "array", "items": {"type": "string"}, "minItems": 1}}})",
     "", true},
    {"parameters", R"({"type": "object", "properties": {"truncate": {"type": "boolean"},
        "truncation_direction": {"type": "string", "enum": ["Left", "Right", "left", "right"]}}})",
     ""},
    {"model", kTextSchema, "an encoder; the first one by default"},
};

constexpr RequestField kTokenize[] = {
    {"inputs", kTextOrTextsSchema, "", true},
    {"add_special_tokens", kTrueSchema, "[CLS] and [SEP] of encoders"},
    {"model", kTextSchema, "the first model by default"},
};

constexpr RequestField kDecode[] = {
    {"ids", R"({"type": "array", "items": {"oneOf": [{"type": "integer", "minimum": 0},
        {"type": "array", "items": {"type": "integer", "minimum": 0}}]}})",
     "one list of token ids, or several", true},
    {"skip_special_tokens", kTrueSchema, ""},
    {"model", kTextSchema, "the first model by default"},
};

absl::StatusOr<std::string> RequiredText(const Json& object, const char* field) {
  HIPPODROME_ASSIGN_OR_RETURN(auto text, TextField(object, field));
  if (!text) return FieldError(field, "it is missing");
  return *std::move(text);
}

// An array of strings that must be there.
absl::StatusOr<std::vector<std::string>> RequiredTexts(const Json& object, const char* field) {
  const Json* array = Find(object, field);
  if (array == nullptr) return FieldError(field, "it is missing");
  if (!array->is_array()) return WrongType(field, "an array of strings", *array);
  std::vector<std::string> texts;
  for (const Json& text : *array) {
    if (!text.is_string()) return WrongType(field, "strings", text);
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::string DumpTei(const TeiJson& json) {
  return json.dump(-1, ' ', false, TeiJson::error_handler_t::replace);
}

TeiJson TokenJson(const PlacedToken& token) {
  TeiJson json = {{"id", token.id}, {"text", token.text}, {"special", token.special}};
  json["start"] = token.place ? TeiJson(token.place->first) : TeiJson(nullptr);
  json["stop"] = token.place ? TeiJson(token.place->second) : TeiJson(nullptr);
  return json;
}

}  // namespace

const RequestFields kRerankFields = kRerank;
const RequestFields kSimilarityFields = kSimilarity;
const RequestFields kTeiTokenizeFields = kTokenize;
const RequestFields kTeiDecodeFields = kDecode;

absl::StatusOr<RerankCall> ParseRerank(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kRerankFields));
  RerankCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto raw, BoolField(json, "raw_scores"));
  call.request.set_raw_scores(raw.value_or(false));
  HIPPODROME_ASSIGN_OR_RETURN(const auto return_text, BoolField(json, "return_text"));
  call.return_text = return_text.value_or(false);
  HIPPODROME_ASSIGN_OR_RETURN(const std::string query, RequiredText(json, "query"));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<std::string> texts, RequiredTexts(json, "texts"));
  for (std::string& text : texts) {
    v1::EncodingInput::Pair& pair = *call.request.add_inputs()->mutable_pair();
    pair.set_first(query);
    pair.set_second(std::move(text));
  }
  return call;
}

absl::StatusOr<SimilarityCall> ParseSimilarity(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kSimilarityFields));
  SimilarityCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  if (const Json* parameters = Find(json, "parameters")) {
    if (!parameters->is_object()) return WrongType("parameters", "an object", *parameters);
    constexpr RequestField kKnown[] = {{"truncate"}, {"truncation_direction"}};
    HIPPODROME_RETURN_IF_ERROR(CheckFields(*parameters, kKnown));
    HIPPODROME_RETURN_IF_ERROR(ReadTruncation(*parameters, *call.request.mutable_truncate()));
  }
  const Json* inputs = Find(json, "inputs");
  if (inputs == nullptr || !inputs->is_object()) {
    return FieldError("inputs", "expected an object with \"source_sentence\" and \"sentences\"");
  }
  HIPPODROME_ASSIGN_OR_RETURN(std::string source, RequiredText(*inputs, "source_sentence"));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<std::string> others, RequiredTexts(*inputs, "sentences"));
  if (others.empty()) return FieldError("sentences", "there are none");
  call.request.add_inputs()->set_text(std::move(source));
  for (std::string& text : others) call.request.add_inputs()->set_text(std::move(text));
  return call;
}

absl::StatusOr<TeiTokenizeCall> ParseTeiTokenize(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kTeiTokenizeFields));
  TeiTokenizeCall call;
  HIPPODROME_ASSIGN_OR_RETURN(call.model, ModelField(json));
  HIPPODROME_ASSIGN_OR_RETURN(const auto special, BoolField(json, "add_special_tokens"));
  call.add_special_tokens = special.value_or(true);
  const Json* inputs = Find(json, "inputs");
  if (inputs != nullptr && inputs->is_string()) {
    call.inputs.push_back(inputs->get<std::string>());
    return call;
  }
  HIPPODROME_ASSIGN_OR_RETURN(call.inputs, RequiredTexts(json, "inputs"));
  return call;
}

absl::StatusOr<TeiDecodeCall> ParseTeiDecode(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kTeiDecodeFields));
  TeiDecodeCall call;
  HIPPODROME_ASSIGN_OR_RETURN(call.model, ModelField(json));
  HIPPODROME_ASSIGN_OR_RETURN(const auto skip, BoolField(json, "skip_special_tokens"));
  call.skip_special_tokens = skip.value_or(true);
  const Json* ids = Find(json, "ids");
  if (ids == nullptr) return FieldError("ids", "it is missing");
  if (!ids->is_array() || ids->empty() || !ids->front().is_array()) {
    HIPPODROME_ASSIGN_OR_RETURN(call.ids.emplace_back(), TokenIdArray(*ids, "ids"));
    return call;
  }
  for (const Json& list : *ids) {
    HIPPODROME_ASSIGN_OR_RETURN(call.ids.emplace_back(), TokenIdArray(list, "ids"));
  }
  return call;
}

std::string RerankBody(const RerankCall& call, const v1::ClassifyResponse& response) {
  std::vector<int> order(response.results_size());
  for (int i = 0; i < response.results_size(); ++i) order[i] = i;
  const auto score = [&](int i) { return response.results(i).scores(0).score(); };
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });
  TeiJson ranks = TeiJson::array();
  for (const int i : order) {
    TeiJson& rank = ranks.emplace_back(TeiJson{{"index", i}});
    if (call.return_text) rank["text"] = call.request.inputs(i).pair().second();
    rank["score"] = score(i);
  }
  return DumpTei(ranks);
}

std::string SimilarityBody(const v1::EmbedResponse& response) {
  const auto& source = response.embeddings(0).values();
  TeiJson cosines = TeiJson::array();
  for (int i = 1; i < response.embeddings_size(); ++i) {
    const auto& other = response.embeddings(i).values();
    double sum = 0;
    for (int k = 0; k < source.size(); ++k) sum += double{source[k]} * other[k];
    cosines.push_back(static_cast<float>(sum));
  }
  return DumpTei(cosines);
}

// Token by token, for a tree of them would take ten times the memory.
std::string TeiTokenizeBody(std::span<const std::vector<PlacedToken>> inputs) {
  std::string body = "[";
  for (size_t i = 0; i < inputs.size(); ++i) {
    body += i == 0 ? "[" : ",[";
    for (size_t t = 0; t < inputs[i].size(); ++t) {
      if (t > 0) body += ",";
      body += DumpTei(TokenJson(inputs[i][t]));
    }
    body += "]";
  }
  return body + "]";
}

std::string TeiDecodeBody(std::span<const std::string> texts) {
  TeiJson list = TeiJson::array();
  for (const std::string& text : texts) list.push_back(text);
  return DumpTei(list);
}

}  // namespace hippodrome
