#include "tools/train/step/gradient_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/check_range.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/passes/encoder_forward.h"
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

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return status.ok() ? status : absl::Status(status.code(), path + ": " + Message(status));
}

absl::Status CheckSequences(const IntegerMatrix& ids, const H3Config& config) {
  if (ids.values.empty()) return InvalidArgument("input_ids has no tokens");
  if (config.max_position_embeddings > 0 && ids.cols > config.max_position_embeddings) {
    return absl::OutOfRangeError(
        fmt::format("sequences of {} tokens exceed the model's {} positions", ids.cols,
                    config.max_position_embeddings));
  }
  return CheckRange("input_ids", ids.values, config.padded_vocab_size);
}

std::vector<int32_t> NextTokens(const IntegerMatrix& ids) {
  std::vector<int32_t> next(ids.values.size(), -1);
  for (size_t i = 0; i + 1 < next.size(); ++i) {
    if ((i + 1) % static_cast<size_t>(ids.cols) != 0) next[i] = ids.values[i + 1];
  }
  return next;
}

// As the published model takes them: the nearest of [0, L], where L has no loss.
absl::StatusOr<std::vector<int32_t>> ReadPositions(const SafetensorsFile& file,
                                                   const std::string& name,
                                                   const TrainingBatch& batch) {
  HIPPODROME_ASSIGN_OR_RETURN(const TensorView* tensor, Find(file, name, {batch.sequences}));
  const auto integers = ToIntegers(*tensor);
  if (!integers.ok()) return InvalidArgument(file.path() + ": " + Message(integers.status()));
  std::vector<int32_t> positions;
  for (const int64_t value : *integers) {
    const bool ignored = value >= batch.length;
    positions.push_back(ignored ? -1 : static_cast<int32_t>(std::max<int64_t>(value, 0)));
  }
  return positions;
}

absl::Status ReadAnswers(const SafetensorsFile& file, TrainingBatch& batch) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto first, ReadPositions(file, "start_positions", batch));
  HIPPODROME_ASSIGN_OR_RETURN(const auto last, ReadPositions(file, "end_positions", batch));
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
  HIPPODROME_RETURN_IF_ERROR(InFile(path, CheckSequences(ids, config)));
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
  HIPPODROME_RETURN_IF_ERROR(InFile(path, CheckEncoderInputs(config, inputs)));
  TrainingBatch batch = {.sequences = inputs.batch,
                         .length = inputs.length,
                         .ids = std::move(inputs.ids),
                         .types = std::move(inputs.types),
                         .mask = std::move(inputs.mask)};
  HIPPODROME_RETURN_IF_ERROR(ReadEncoderLabels(*file, config, batch));
  return batch;
}

}  // namespace hippodrome
