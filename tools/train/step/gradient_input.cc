#include "tools/train/step/gradient_input.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/command_line/encoder_input.h"
#include "tools/command_line/integer_matrix.h"

namespace hippodrome {
namespace {

constexpr int64_t kIgnored = -100;

absl::StatusOr<const TensorView*> Find(const SafetensorsFile& file, const std::string& name,
                                       const std::vector<int64_t>& shape) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr) return NotFound(file.path() + ": there is no tensor " + name);
  if (tensor->shape != shape) {
    return InvalidArgument(fmt::format("{}: {} has shape [{}], expected [{}]", file.path(), name,
                                       fmt::join(tensor->shape, ", "), fmt::join(shape, ", ")));
  }
  return tensor;
}

// Integers in [0, limit), or -1 for -100 where `optional`.
absl::StatusOr<std::vector<int32_t>> ReadLabels(const SafetensorsFile& file,
                                                const std::string& name,
                                                const std::vector<int64_t>& shape, int64_t limit,
                                                bool optional) {
  HIPPODROME_ASSIGN_OR_RETURN(const TensorView* tensor, Find(file, name, shape));
  const auto integers = ToIntegers(*tensor);
  if (!integers.ok()) return InvalidArgument(file.path() + ": " + Message(integers.status()));
  std::vector<int32_t> labels;
  for (const int64_t value : *integers) {
    const bool ignored = optional && value == kIgnored;
    if (!ignored && (value < 0 || value >= limit)) {
      return InvalidArgument(fmt::format("{}: {}: element {} is {}, expected a value in [0, {}){}",
                                         file.path(), name, labels.size(), value, limit,
                                         optional ? " or -100" : ""));
    }
    labels.push_back(ignored ? -1 : static_cast<int32_t>(value));
  }
  return labels;
}

absl::Status CheckIds(const std::string& path, const char* name, const std::vector<int32_t>& ids,
                      int64_t limit) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= limit) {
      return InvalidArgument(fmt::format("{}: {}: element {} is {}, expected a value in [0, {})",
                                         path, name, i, ids[i], limit));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLength(const std::string& path, int64_t sequences, int64_t length,
                         int64_t positions) {
  if (sequences == 0 || length == 0) return InvalidArgument(path + ": input_ids has no tokens");
  if (positions > 0 && length > positions) {
    return absl::OutOfRangeError(fmt::format(
        "{}: sequences of {} tokens exceed the model's {} positions", path, length, positions));
  }
  return absl::OkStatus();
}

std::vector<int32_t> NextTokens(const IntegerMatrix& ids) {
  std::vector<int32_t> next(ids.values.size(), -1);
  for (size_t i = 0; i + 1 < next.size(); ++i) {
    if ((i + 1) % static_cast<size_t>(ids.cols) != 0) next[i] = ids.values[i + 1];
  }
  return next;
}

absl::Status ReadAnswers(const SafetensorsFile& file, TrainingBatch& batch) {
  const std::vector<int64_t> shape = {batch.sequences};
  HIPPODROME_ASSIGN_OR_RETURN(const auto first,
                              ReadLabels(file, "start_positions", shape, batch.length + 1, false));
  HIPPODROME_ASSIGN_OR_RETURN(const auto last,
                              ReadLabels(file, "end_positions", shape, batch.length + 1, false));
  for (size_t i = 0; i < first.size(); ++i) {
    batch.labels.push_back(first[i]);
    batch.labels.push_back(last[i]);
  }
  return absl::OkStatus();
}

absl::Status ReadTargets(const SafetensorsFile& file, TrainingBatch& batch) {
  HIPPODROME_ASSIGN_OR_RETURN(const TensorView* tensor, Find(file, "labels", {batch.sequences}));
  auto targets = ToFloats(*tensor);
  if (!targets.ok()) return InvalidArgument(file.path() + ": " + Message(targets.status()));
  for (const float target : *targets) {
    if (!std::isfinite(target)) {
      return InvalidArgument(file.path() + ": labels: a value is not a finite number");
    }
  }
  batch.targets = *std::move(targets);
  return absl::OkStatus();
}

absl::Status ReadEncoderLabels(const SafetensorsFile& file, const BigsConfig& config,
                               TrainingBatch& batch) {
  const int64_t columns = LogitsPerAnswer(config);
  const bool tokens = AnswersForTokens(config.head);
  if (config.head == EncoderHead::kQuestionAnswering) return ReadAnswers(file, batch);
  if (!tokens && columns == 1) return ReadTargets(file, batch);
  const std::vector<int64_t> shape = tokens ? std::vector<int64_t>{batch.sequences, batch.length}
                                            : std::vector<int64_t>{batch.sequences};
  HIPPODROME_ASSIGN_OR_RETURN(batch.labels, ReadLabels(file, "labels", shape, columns, tokens));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingBatch> ReadGradientInput(const std::string& path, const H3Config& config) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(path));
  HIPPODROME_ASSIGN_OR_RETURN(IntegerMatrix ids, ReadIntegerMatrix(*file, "input_ids"));
  HIPPODROME_RETURN_IF_ERROR(CheckLength(path, ids.rows, ids.cols, config.max_position_embeddings));
  HIPPODROME_RETURN_IF_ERROR(CheckIds(path, "input_ids", ids.values, config.padded_vocab_size));
  TrainingBatch batch = {.sequences = ids.rows, .length = ids.cols};
  if (file->Find("labels") == nullptr) {
    batch.labels = NextTokens(ids);
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(batch.labels, ReadLabels(*file, "labels", {ids.rows, ids.cols},
                                                         config.padded_vocab_size, true));
  }
  batch.ids = std::move(ids.values);
  return batch;
}

absl::StatusOr<TrainingBatch> ReadGradientInput(const std::string& path, const BigsConfig& config) {
  HIPPODROME_ASSIGN_OR_RETURN(EncoderInputs inputs, ReadEncoderInputs(path));
  HIPPODROME_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(path));
  HIPPODROME_RETURN_IF_ERROR(
      CheckLength(path, inputs.batch, inputs.length, config.max_position_embeddings));
  HIPPODROME_RETURN_IF_ERROR(CheckIds(path, "input_ids", inputs.ids, config.vocab_size));
  HIPPODROME_RETURN_IF_ERROR(
      CheckIds(path, "token_type_ids", inputs.types, config.type_vocab_size));
  HIPPODROME_RETURN_IF_ERROR(CheckIds(path, "attention_mask", inputs.mask, 2));
  TrainingBatch batch = {.sequences = inputs.batch,
                         .length = inputs.length,
                         .ids = std::move(inputs.ids),
                         .types = std::move(inputs.types),
                         .mask = std::move(inputs.mask)};
  HIPPODROME_RETURN_IF_ERROR(ReadEncoderLabels(*file, config, batch));
  return batch;
}

}  // namespace hippodrome
