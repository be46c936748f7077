#include "server/handlers/encoding_handlers.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/tasks/best_indices.h"
#include "engine/tasks/label_scores.h"
#include "server/handlers/encoding_inputs.h"
#include "server/handlers/encoding_submit.h"

namespace hippodrome {
namespace {

std::vector<EncoderRequest> NewRequests(std::vector<EncodedText> texts, EncoderTask task) {
  std::vector<EncoderRequest> requests;
  for (EncodedText& text : texts) requests.push_back(NewRequest(std::move(text), task));
  return requests;
}

void AddScores(std::span<const float> scores, const std::vector<std::string>& labels,
               v1::ClassifyResponse& response) {
  v1::ClassifyResponse::Result& result = *response.add_results();
  for (const int32_t i : BestIndices(scores, std::ssize(scores))) {
    v1::ClassifyResponse::Score& score = *result.add_scores();
    score.set_label(labels[i]);
    score.set_score(scores[i]);
  }
}

v1::ClassifyResponse LabelResults(const std::vector<EncoderOutput>& outputs,
                                  const std::vector<std::string>& labels, bool raw) {
  v1::ClassifyResponse response;
  for (const EncoderOutput& output : outputs) {
    AddScores(raw ? output.values : LabelScores(output.values), labels, response);
  }
  return response;
}

// Each output is the logit of one choice.
v1::ClassifyResponse ChoiceResult(const std::vector<EncoderOutput>& outputs, bool raw) {
  std::vector<float> logits;
  std::vector<std::string> labels;
  for (const EncoderOutput& output : outputs) {
    labels.push_back(std::to_string(logits.size()));
    logits.push_back(output.values[0]);
  }
  v1::ClassifyResponse response;
  AddScores(raw ? logits : Softmax(logits), labels, response);
  return response;
}

// x / |x|, and 0 for 0.
void Normalize(std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  if (sum == 0) return;
  const double scale = 1 / std::sqrt(sum);
  for (float& value : values) value = static_cast<float>(value * scale);
}

// One for each row of the outputs.
v1::EmbedResponse Embeddings(const std::vector<EncoderOutput>& outputs, bool normalize) {
  v1::EmbedResponse response;
  for (const EncoderOutput& output : outputs) {
    for (int64_t row = 0; row < output.rows; ++row) {
      std::vector<float> values(Row(output, row).begin(), Row(output, row).end());
      if (normalize) Normalize(values);
      response.add_embeddings()->mutable_values()->Add(values.begin(), values.end());
    }
  }
  return response;
}

// What is asked for all tokens of `texts`, of `size` values each.
absl::StatusOr<std::vector<EncoderRequest>> TokenRequests(std::vector<EncodedText> texts,
                                                          int64_t size,
                                                          const RequestLimits& limits) {
  std::vector<EncoderRequest> requests;
  int64_t values = 0;
  for (EncodedText& text : texts) {
    std::vector<int32_t> rows = AllRows(text);
    values += std::ssize(rows) * size;
    requests.push_back(NewRequest(std::move(text), EncoderTask::kTokenEmbeddings, std::move(rows)));
  }
  if (values <= limits.max_token_values) return requests;
  return absl::OutOfRangeError(
      fmt::format("the embeddings of all tokens have {} values, expected at most {}", values,
                  limits.max_token_values));
}

}  // namespace

Answer<v1::ClassifyResponse> EncodingHandlers::Classify(const v1::ClassifyRequest& request,
                                                        const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(
      const std::shared_ptr<ServedEncoder> model,
      models_.FindEncoder(request.model(),
                          {EncoderHead::kSequenceClassification, EncoderHead::kMultipleChoice}));
  const BigsConfig& config = model->engine().config();
  const bool choices = config.head == EncoderHead::kMultipleChoice;
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<EncodedText> texts,
                              LayOutInputs(request.inputs(), request.truncate(), *model, limits_));
  const bool raw = request.raw_scores();
  return SubmitEncoding<v1::ClassifyResponse>(
      *model, NewRequests(std::move(texts), EncoderTask::kHead), caller,
      [choices, raw, &config](const std::vector<EncoderOutput>& outputs) {
        return choices ? ChoiceResult(outputs, raw) : LabelResults(outputs, config.labels, raw);
      });
}

Answer<v1::EmbedResponse> EncodingHandlers::Embed(const v1::EmbedRequest& request,
                                                  const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedEncoder> model,
                              models_.FindEncoder(request.model()));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<EncodedText> texts,
                              LayOutInputs(request.inputs(), request.truncate(), *model, limits_));
  const bool normalize = !request.has_normalize() || request.normalize();
  if (request.per_token()) {
    HIPPODROME_ASSIGN_OR_RETURN(
        std::vector<EncoderRequest> requests,
        TokenRequests(std::move(texts), model->info().embedding_size(), limits_));
    return SubmitEncoding<v1::EmbedResponse>(
        *model, std::move(requests), caller,
        [normalize](const std::vector<EncoderOutput>& outputs) {
          v1::EmbedResponse response = Embeddings(outputs, normalize);
          for (const EncoderOutput& output : outputs) response.add_tokens(output.rows);
          return response;
        });
  }
  return SubmitEncoding<v1::EmbedResponse>(
      *model, NewRequests(std::move(texts), EncoderTask::kEmbedding), caller,
      [normalize](const std::vector<EncoderOutput>& outputs) {
        return Embeddings(outputs, normalize);
      });
}

absl::StatusOr<v1::Model> EncodingHandlers::GetModel(const std::string& name) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedEncoder> model,
                              models_.FindEncoder(name));
  return model->info();
}

}  // namespace hippodrome
