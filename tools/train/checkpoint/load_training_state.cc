// Finding and checking what SaveTrainingState() wrote.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/json_object.h"
#include "engine/base/one_line.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "tools/train/checkpoint/checkpoint_directory.h"
#include "tools/train/checkpoint/checksum.h"
#include "tools/train/checkpoint/training_state.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

// The "state" of a state.json whose checksum is right.
absl::StatusOr<Json> ReadState(const std::string& path) {
  constexpr size_t kLargestFile = size_t{64} << 20;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kLargestFile));
  auto json = ParseJsonObject(text);
  if (!json.ok()) return InvalidArgument(path + ": " + Message(json.status()));
  const Json& state = (*json)["state"];
  const Json& checksum = (*json)["checksum"];
  const std::string found = Checksum(state.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!state.is_object() || !checksum.is_string() || checksum.get<std::string>() != found) {
    return InvalidArgument(path + ": damaged, its checksum is wrong");
  }
  return state;
}

absl::StatusOr<BestEvaluation> ParseBest(const Json& json, int64_t step) {
  if (!json.is_object()) return InvalidArgument("best: expected an object");
  ObjectReader reader(json, "best.");
  BestEvaluation best;
  best.step = reader.Integer("step", {0, step});
  best.evaluations_since = reader.Integer("evaluations_since", {0, step});
  const Json* figure = reader.Find("figure");
  if (figure != nullptr && figure->is_number()) {
    best.figure = figure->get<double>();
  } else {
    reader.Reject("figure", "a number");
  }
  HIPPODROME_RETURN_IF_ERROR(reader.status());
  return best;
}

absl::StatusOr<TrainingPosition> ParsePosition(const Json& state, int64_t step) {
  ObjectReader reader(state, "");
  TrainingPosition position;
  position.step = reader.Integer("step", {step, step});
  position.tokens = reader.Integer("tokens", {0, INT64_MAX});
  position.batch = reader.Integer("batch", {0, INT64_MAX});
  const Json* seconds = reader.Find("seconds");
  if (seconds != nullptr && seconds->is_number()) position.seconds = seconds->get<double>();
  if (!(position.seconds >= 0)) reader.Reject("seconds", "a number from 0");
  position.fingerprint = reader.Text("fingerprint", "");
  HIPPODROME_RETURN_IF_ERROR(reader.status());
  if (const Json* best = reader.Find("best")) {
    HIPPODROME_ASSIGN_OR_RETURN(position.best, ParseBest(*best, step));
  }
  return position;
}

// Whether the file holds exactly the bytes that were written.
absl::Status CheckArrays(const SafetensorsFile& file, const Json& state) {
  const auto checksums = state.find("arrays");
  if (checksums == state.end() || !checksums->is_object() ||
      checksums->size() != file.tensors().size()) {
    return InvalidArgument(file.path() + ": damaged, it lacks arrays");
  }
  for (const auto& [name, tensor] : file.tensors()) {
    const auto expected = checksums->find(name);
    const bool whole = expected != checksums->end() && expected->is_string() &&
                       expected->get<std::string>() == Checksum(tensor.data);
    if (!whole) {
      return InvalidArgument(
          fmt::format("{}: damaged, the checksum of {} is wrong", file.path(), OneLine(name)));
    }
    file.Drop(tensor);
  }
  return absl::OkStatus();
}

// Errors here are damage.
absl::StatusOr<LoadedTrainingState> Open(const std::string& folder, int64_t step) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json state, ReadState(folder + "/state.json"));
  LoadedTrainingState loaded;
  HIPPODROME_ASSIGN_OR_RETURN(loaded.position, ParsePosition(state, step));
  HIPPODROME_ASSIGN_OR_RETURN(loaded.file, SafetensorsFile::Open(folder + "/state.safetensors"));
  HIPPODROME_RETURN_IF_ERROR(CheckArrays(*loaded.file, state));
  return loaded;
}

// Errors here mean another model.
absl::Status CheckShapes(const SafetensorsFile& file, const std::vector<TrainingArray>& arrays) {
  for (const TrainingArray& array : arrays) {
    const TensorView* tensor = file.Find(array.name);
    if (tensor != nullptr && tensor->shape == array.shape && tensor->dtype == DType::kF32) continue;
    const std::string found =
        tensor == nullptr ? "missing" : fmt::format("[{}]", fmt::join(tensor->shape, ", "));
    return InvalidArgument(fmt::format("{}: {} is {}, expected [{}] for this run", file.path(),
                                       array.name, found, fmt::join(array.shape, ", ")));
  }
  if (file.tensors().size() == arrays.size()) return absl::OkStatus();
  return InvalidArgument(fmt::format("{}: holds {} arrays, expected {} for this run", file.path(),
                                     file.tensors().size(), arrays.size()));
}

}  // namespace

absl::StatusOr<std::vector<float>> LoadedTrainingState::Read(const std::string& name) const {
  const TensorView* tensor = file->Find(name);
  if (tensor == nullptr) return NotFound(file->path() + ": no array " + name);
  return ToFloats(*tensor);
}

absl::StatusOr<LoadedTrainingState> LoadLatestState(const std::string& output,
                                                    const std::vector<TrainingArray>& arrays) {
  const CheckpointDirectory checkpoints(output);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, checkpoints.Steps());
  if (steps.empty()) return NotFound(output + ": no checkpoint to resume from");
  std::vector<std::string> warnings;
  for (const int64_t step : steps) {
    absl::StatusOr<LoadedTrainingState> loaded = Open(checkpoints.Path(step), step);
    if (!loaded.ok()) {
      warnings.push_back(Message(loaded.status()));
      continue;
    }
    HIPPODROME_RETURN_IF_ERROR(CheckShapes(*loaded->file, arrays));
    loaded->warnings = std::move(warnings);
    return loaded;
  }
  return InvalidArgument(fmt::format("no checkpoint is whole: {}", fmt::join(warnings, "; ")));
}

}  // namespace hippodrome
