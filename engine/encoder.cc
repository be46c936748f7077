#include "engine/encoder.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "engine/base/check_range.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

absl::Status CheckTask(const BigsConfig& config, const EncoderRequest& request) {
  const bool for_tokens = request.task == EncoderTask::kTokenEmbeddings ||
                          (request.task == EncoderTask::kHead && AnswersForTokens(config.head));
  if (request.task == EncoderTask::kHead && config.head == EncoderHead::kNone) {
    return FailedPrecondition("the model has no head: it gives embeddings only");
  }
  if (for_tokens == request.rows.empty()) {
    return InvalidArgument(for_tokens ? "no token is asked for"
                                      : "single tokens are asked for, of a whole input's answer");
  }
  return CheckRange("row", request.rows, static_cast<int64_t>(request.ids.size()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Encoder>> Encoder::Create(Backend& backend, const Bigs& model,
                                                         const EncoderOptions& options) {
  const int64_t positions = model.config().max_position_embeddings;
  const int64_t pad_to = options.pad_to.value_or(model.config().pad_to);
  if (pad_to < 0 || pad_to > positions) {
    return InvalidArgument("pad_to is " + std::to_string(pad_to) +
                           ", expected 0 for none, or up to " + std::to_string(positions) +
                           " positions of the model");
  }
  if (options.max_batch_tokens < 1) {
    return InvalidArgument("max_batch_tokens is " + std::to_string(options.max_batch_tokens) +
                           ", expected 1 or more");
  }
  return std::unique_ptr<Encoder>(new Encoder(backend, model, pad_to, options.max_batch_tokens));
}

Encoder::Encoder(Backend& backend, const Bigs& model, int64_t pad_to, int64_t max_batch_tokens)
    : model_(model),
      max_batch_tokens_(max_batch_tokens),
      pads_(pad_to > 0),
      max_tokens_(pads_ ? pad_to : model.config().max_position_embeddings),
      pass_(backend, model, std::max(max_batch_tokens, max_tokens_)) {}

absl::Status Encoder::Validate(const EncoderRequest& request) const {
  const auto tokens = static_cast<int64_t>(request.ids.size());
  if (tokens == 0) return InvalidArgument("an input without tokens");
  if (tokens > max_tokens_) {
    return absl::OutOfRangeError("an input of " + std::to_string(tokens) + " tokens exceeds the " +
                                 std::to_string(max_tokens_) + " that the model takes");
  }
  if (!request.types.empty() && request.types.size() != request.ids.size()) {
    return InvalidArgument(std::to_string(request.types.size()) + " token types for " +
                           std::to_string(tokens) + " tokens");
  }
  HIPPODROME_RETURN_IF_ERROR(CheckRange("token", request.ids, config().vocab_size));
  HIPPODROME_RETURN_IF_ERROR(CheckRange("token type", request.types, config().type_vocab_size));
  return CheckTask(config(), request);
}

void Encoder::RunLayers(std::span<const EncoderRequest* const> requests, int64_t length) {
  const auto sequences = static_cast<int64_t>(requests.size());
  ids_.assign(sequences * length, static_cast<int32_t>(config().pad_token_id));
  types_.assign(sequences * length, 0);
  mask_.assign(sequences * length, 0);
  for (int64_t b = 0; b < sequences; ++b) {
    const EncoderRequest& request = *requests[b];
    std::copy(request.ids.begin(), request.ids.end(), ids_.begin() + b * length);
    std::copy(request.types.begin(), request.types.end(), types_.begin() + b * length);
    std::fill_n(mask_.begin() + b * length, request.ids.size(), 1);
  }
  pass_.Run(
      {.sequences = sequences, .length = length, .ids = ids_, .types = types_, .mask = mask_});
}

void Encoder::Answer(std::span<const EncoderRequest* const> requests, int64_t length,
                     std::vector<EncoderOutput>& outputs) {
  const int64_t columns = LogitsPerAnswer(config());
  if (!AnswersForTokens(config().head)) {
    std::vector<float> logits(requests.size() * columns);
    pass_.SequenceLogits(logits);
    for (size_t b = 0; b < requests.size(); ++b) {
      if (requests[b]->task != EncoderTask::kHead) continue;
      const auto first = logits.begin() + static_cast<int64_t>(b) * columns;
      outputs[b] = {.rows = 1, .cols = columns, .values = {first, first + columns}};
    }
    return;
  }
  // All rows together, since each product reads the whole head.
  std::vector<int32_t> rows;
  for (size_t b = 0; b < requests.size(); ++b) {
    if (requests[b]->task != EncoderTask::kHead) continue;
    for (const int32_t row : requests[b]->rows) {
      rows.push_back(static_cast<int32_t>(static_cast<int64_t>(b) * length + row));
    }
  }
  std::vector<float> logits(rows.size() * columns);
  pass_.TokenLogits(rows, logits);
  auto next = logits.begin();
  for (size_t b = 0; b < requests.size(); ++b) {
    if (requests[b]->task != EncoderTask::kHead) continue;
    const auto count = static_cast<int64_t>(requests[b]->rows.size());
    outputs[b] = {.rows = count, .cols = columns, .values = {next, next + count * columns}};
    next += count * columns;
  }
}

void Encoder::Embed(std::span<const EncoderRequest* const> requests,
                    std::vector<EncoderOutput>& outputs) {
  const int64_t d = config().hidden_size;
  std::vector<float> means(requests.size() * d);
  pass_.Means(means);
  for (size_t b = 0; b < requests.size(); ++b) {
    if (requests[b]->task != EncoderTask::kEmbedding) continue;
    const auto first = means.begin() + static_cast<int64_t>(b) * d;
    outputs[b] = {.rows = 1, .cols = d, .values = {first, first + d}};
  }
}

void Encoder::EmbedTokens(std::span<const EncoderRequest* const> requests, int64_t length,
                          std::vector<EncoderOutput>& outputs) {
  const int64_t d = config().hidden_size;
  std::vector<float> states(requests.size() * length * d);
  pass_.States(states);
  for (size_t b = 0; b < requests.size(); ++b) {
    if (requests[b]->task != EncoderTask::kTokenEmbeddings) continue;
    const std::vector<int32_t>& rows = requests[b]->rows;
    outputs[b] = {.rows = std::ssize(rows), .cols = d, .values = {}};
    outputs[b].values.reserve(rows.size() * d);
    for (const int32_t row : rows) {
      const auto first = states.begin() + (static_cast<int64_t>(b) * length + row) * d;
      outputs[b].values.insert(outputs[b].values.end(), first, first + d);
    }
  }
}

std::vector<EncoderOutput> Encoder::Run(std::span<const EncoderRequest* const> requests) {
  assert(std::all_of(requests.begin(), requests.end(),
                     [&](const EncoderRequest* request) { return Validate(*request).ok(); }));
  const int64_t length = PaddedLength(static_cast<int64_t>(requests.front()->ids.size()));
  RunLayers(requests, length);
  std::vector<EncoderOutput> outputs(requests.size());
  const auto asks = [&](EncoderTask task) {
    return std::any_of(requests.begin(), requests.end(),
                       [&](const EncoderRequest* request) { return request->task == task; });
  };
  if (asks(EncoderTask::kHead)) Answer(requests, length, outputs);
  if (asks(EncoderTask::kEmbedding)) Embed(requests, outputs);
  if (asks(EncoderTask::kTokenEmbeddings)) EmbedTokens(requests, length, outputs);
  return outputs;
}

}  // namespace hippodrome
