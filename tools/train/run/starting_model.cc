#include "tools/train/run/starting_model.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/json_object.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/initialization/initial_weights.h"
#include "engine/initialization/position_table.h"
#include "kernels/quantized_group.h"
#include "tools/train/step/encoder_trainee.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargestConfig = size_t{16} << 20;

bool IsForDecoders(Objective objective) {
  return objective == Objective::kCausalLm || IsSynthetic(objective);
}

EncoderHead HeadFor(Objective objective) {
  switch (objective) {
    case Objective::kMaskedLm:
      return EncoderHead::kMaskedLm;
    case Objective::kTokenClassification:
      return EncoderHead::kTokenClassification;
    case Objective::kQuestionAnswering:
      return EncoderHead::kQuestionAnswering;
    default:
      return EncoderHead::kSequenceClassification;
  }
}

// The config.json of the run: what it comes from, with what it overrides.
absl::StatusOr<Json> MergedConfig(const TrainingRun& run) {
  Json json = Json::object();
  if (!run.model.from.empty()) {
    const std::string path = run.model.from + "/config.json";
    HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kLargestConfig));
    auto parsed = ParseJsonObject(text);
    if (!parsed.ok()) return InvalidArgument(path + ": " + Message(parsed.status()));
    json = *std::move(parsed);
  }
  if (!run.model.config.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(const Json changes, ParseJsonObject(run.model.config));
    json.update(changes);
  }
  if (run.model.positions > 0) {
    json["max_position_embeddings"] = run.model.positions;
    json.erase("pad_to");
  }
  return json;
}

absl::StatusOr<ModelConfig> EncoderConfig(const TrainingRun& run, Json json) {
  if (IsForDecoders(run.objective)) {
    return InvalidArgument(std::string("objective: ") + Name(run.objective) +
                           " needs a model of type \"h3\", this one is a BiGS encoder");
  }
  if (run.dropout.attention > 0) {
    return InvalidArgument(
        "dropout.attention: only decoders drop attention's weights, this is a"
        " BiGS encoder");
  }
  const EncoderHead head = HeadFor(run.objective);
  json["architectures"] = {Name(head)};
  const std::vector<std::string>& names =
      run.data.classes.empty() ? run.data.labels : run.data.classes;
  if (!names.empty()) {
    json["id2label"] = Json::object();
    for (size_t i = 0; i < names.size(); ++i) json["id2label"][std::to_string(i)] = names[i];
  }
  if (run.objective == Objective::kRegression) json["id2label"] = {{"0", "score"}};
  if (head != EncoderHead::kMaskedLm) json["pad_to"] = run.length;
  HIPPODROME_ASSIGN_OR_RETURN(BigsConfig config, ParseBigsConfig(json.dump()));
  if (run.length > config.max_position_embeddings) {
    return InvalidArgument("length: " + std::to_string(run.length) + ", expected at most the " +
                           std::to_string(config.max_position_embeddings) +
                           " positions of the model");
  }
  return config;
}

absl::StatusOr<ModelConfig> DecoderConfig(const TrainingRun& run, const Json& json) {
  if (!IsForDecoders(run.objective)) {
    return InvalidArgument(std::string("objective: ") + Name(run.objective) +
                           " needs a model of type \"BiGS\", this one is a decoder");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, ParseH3Config(json.dump()));
  if (config.max_position_embeddings > 0 && run.length > config.max_position_embeddings) {
    return InvalidArgument("length: " + std::to_string(run.length) + ", expected at most the " +
                           std::to_string(config.max_position_embeddings) +
                           " positions of the model");
  }
  return config;
}

absl::StatusOr<InitializationOptions> OptionsOf(const TrainingRun& run) {
  static const std::map<std::string, Measure> kMeasures = {{"diag-lin", Measure::kDiagLin},
                                                           {"diag-inv", Measure::kDiagInv},
                                                           {"diag", Measure::kDiag},
                                                           {"diag-legs", Measure::kDiagLegs}};
  static const std::map<std::string, EncoderScaling> kScalings = {{"hippo", EncoderScaling::kHippo},
                                                                  {"lin", EncoderScaling::kLin},
                                                                  {"inv", EncoderScaling::kInv}};
  return InitializationOptions{.seed = run.seed,
                               .initializer_range = run.initialization.range,
                               .measure = kMeasures.at(run.initialization.measure),
                               .scaling = kScalings.at(run.initialization.scaling)};
}

absl::StatusOr<std::vector<InitialParameter>> Initial(const TrainingRun& run,
                                                      const ModelConfig& config) {
  HIPPODROME_ASSIGN_OR_RETURN(const InitializationOptions options, OptionsOf(run));
  if (const auto* decoder = std::get_if<H3Config>(&config)) {
    return InitialWeights(*decoder, options);
  }
  return InitialWeights(std::get<BigsConfig>(config), options);
}

bool IsPositionTable(const std::string& name) {
  return name.ends_with("position_embeddings.weight");
}

absl::StatusOr<std::vector<float>> ReadValues(const SafetensorsFile& file, const TensorView& tensor,
                                              DType stored, const std::vector<int64_t>& shape) {
  if (!IsQuantized(stored)) return ToFloats(tensor);
  FileWeights source(file);
  HIPPODROME_ASSIGN_OR_RETURN(const StoredMatrix matrix,
                              GetMatrix(source, tensor.name, shape[0], shape[1]));
  return Dequantize(matrix);
}

// Replaces the values of `parameter` by those of the file, if it has them: of integers, by their
// products with their scales.
absl::Status Take(const SafetensorsFile& file, bool grows, InitialParameter& parameter) {
  const TensorView* tensor = file.Find(parameter.name);
  if (tensor == nullptr) return absl::OkStatus();
  const bool table = grows && IsPositionTable(parameter.name) && tensor->shape.size() == 2 &&
                     tensor->shape[1] == parameter.shape[1] && tensor->shape[0] > 0 &&
                     tensor->shape[0] <= parameter.shape[0];
  // A new task's classifier begins anew; whatever else disagrees is a mistake.
  const bool classifier = parameter.name.starts_with("classifier.");
  const DType stored = parameter.shape.size() == 2 ? StoredType(file, *tensor) : tensor->dtype;
  const std::vector<int64_t> shape =
      StoredSpecs({parameter.name, stored, parameter.shape}).front().shape;
  if (tensor->shape != shape && !table) {
    if (classifier) return absl::OkStatus();
    HIPPODROME_RETURN_IF_ERROR(file.Get(parameter.name, shape).status());
  }
  HIPPODROME_ASSIGN_OR_RETURN(parameter.values, ReadValues(file, *tensor, stored, parameter.shape));
  if (table) {
    parameter.values = TilePositions(parameter.values, parameter.shape[1], parameter.shape[0]);
  }
  return absl::OkStatus();
}

}  // namespace

ModelFamily FamilyOf(const ModelConfig& config) {
  return std::holds_alternative<H3Config>(config) ? ModelFamily::kH3 : ModelFamily::kBigs;
}

absl::StatusOr<ModelConfig> StartingConfig(const TrainingRun& run) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, MergedConfig(run));
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ParseModelFamily(json.dump()));
  auto config = family == ModelFamily::kBigs ? EncoderConfig(run, json) : DecoderConfig(run, json);
  if (!config.ok()) return InvalidArgument("model: " + Message(config.status()));
  return config;
}

absl::Status AddStartingParameters(const TrainingRun& run, const ModelConfig& config,
                                   Parameters& parameters) {
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<InitialParameter> initial, Initial(run, config));
  if (!run.model.from.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto file,
                                SafetensorsFile::Open(run.model.from + "/model.safetensors"));
    for (InitialParameter& parameter : initial) {
      HIPPODROME_RETURN_IF_ERROR(Take(*file, run.model.positions > 0, parameter));
    }
  }
  for (InitialParameter& parameter : initial) {
    parameters.Add(parameter.name, parameter.shape, std::move(parameter.values));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Trainee>> MakeTrainee(const ModelConfig& config, DType weights,
                                                     const TraineeSize& size, Tape& tape,
                                                     Parameters& parameters) {
  if (const auto* decoder = std::get_if<H3Config>(&config)) {
    return DecoderTrainee::Create(tape, parameters, *decoder, weights, size);
  }
  return EncoderTrainee::Create(tape, parameters, std::get<BigsConfig>(config), weights, size);
}

}  // namespace hippodrome
