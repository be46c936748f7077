#include "tools/train/checkpoint/training_state.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/durable_files.h"
#include "engine/base/status.h"
#include "tools/train/checkpoint/checkpoint_directory.h"
#include "tools/train/checkpoint/checksum.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

constexpr size_t kKept = 2;
constexpr const char* kArrays = "/state.safetensors";
constexpr const char* kPosition = "/state.json";

size_t ByteCount(const TrainingArray& array) {
  size_t bytes = sizeof(float);
  for (const int64_t size : array.shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

// Writes the arrays; gives their checksums by name.
absl::StatusOr<Json> WriteArrays(const std::string& path, const std::vector<TrainingArray>& arrays,
                                 const ReadStateArray& read) {
  std::vector<TensorSpec> specs;
  for (const TrainingArray& array : arrays) {
    specs.push_back({.name = array.name, .dtype = DType::kF32, .shape = array.shape});
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer, SafetensorsWriter::Create(path, specs));
  Json checksums = Json::object();
  for (size_t i = 0; i < arrays.size(); ++i) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::span<const float> values, read(i));
    const std::span<const std::byte> bytes = std::as_bytes(values);
    if (bytes.size() != ByteCount(arrays[i])) {
      return Internal(path + ": " + arrays[i].name + " has a size other than its shape");
    }
    checksums[arrays[i].name] = Checksum(bytes);
    HIPPODROME_RETURN_IF_ERROR(writer->Append(bytes));
  }
  HIPPODROME_RETURN_IF_ERROR(writer->Finish());
  return checksums;
}

}  // namespace

absl::Status SaveTrainingState(const std::string& output, const TrainingPosition& position,
                               const std::vector<TrainingArray>& arrays,
                               const ReadStateArray& read) {
  const CheckpointDirectory checkpoints(output);
  HIPPODROME_ASSIGN_OR_RETURN(const std::string folder, checkpoints.Begin(position.step));
  HIPPODROME_ASSIGN_OR_RETURN(Json checksums, WriteArrays(folder + kArrays, arrays, read));
  Json state = {{"step", position.step},
                {"tokens", position.tokens},
                {"batch", position.batch},
                {"seconds", position.seconds},
                {"fingerprint", position.fingerprint},
                {"arrays", std::move(checksums)}};
  if (const auto& best = position.best) {
    state["best"] = {{"step", best->step},
                     {"figure", best->figure},
                     {"evaluations_since", best->evaluations_since}};
  }
  const Json json = {{"checksum", Checksum(state.dump())}, {"state", state}};
  HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(folder + kPosition, json.dump(1)));
  return checkpoints.Publish(position.step, kKept);
}

}  // namespace hippodrome
