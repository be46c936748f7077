#include "tools/convert/sharded_checkpoint.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/json_object.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

constexpr size_t kLargestIndex = size_t{32} << 20;
constexpr size_t kMostShards = 128;  // each stays open, with a buffer
constexpr size_t kLongestFileName = 255;

// Name of a tensor -> name of its file.
using WeightMap = std::map<std::string, std::string>;

// A shard is opened beside the index, so its name must not lead elsewhere.
absl::Status CheckShardName(const std::string& tensor, const std::string& shard) {
  const bool plain = !shard.empty() && shard.size() <= kLongestFileName && shard != "." &&
                     shard != ".." &&
                     shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (plain && !shard.ends_with(kIndexSuffix)) return absl::OkStatus();
  return InvalidArgument("weight_map has tensor '" + Printable(tensor) + "' in '" +
                         Printable(shard) +
                         "'; expected the name of a checkpoint file beside the index");
}

absl::StatusOr<WeightMap> ReadWeightMap(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kLargestIndex));
  HIPPODROME_ASSIGN_OR_RETURN(const nlohmann::json index, ParseJsonObject(text));
  const auto found = index.find("weight_map");
  if (found == index.end() || !found->is_object() || found->empty()) {
    return InvalidArgument("weight_map is missing or empty; expected {\"tensor\": \"file\", ..}");
  }
  WeightMap map;
  for (const auto& [tensor, shard] : found->items()) {
    if (!shard.is_string()) {
      return InvalidArgument("weight_map has tensor '" + Printable(tensor) + "' in " +
                             Printable(shard.dump()) + "; expected the name of a file");
    }
    HIPPODROME_RETURN_IF_ERROR(CheckShardName(tensor, shard.get<std::string>()));
    map.emplace(tensor, shard.get<std::string>());
  }
  return map;
}

struct Shard {
  std::string name;
  std::unique_ptr<CheckpointSource> source;
};

absl::StatusOr<std::vector<Shard>> OpenShards(const std::filesystem::path& folder,
                                              const WeightMap& map) {
  std::set<std::string> names;
  for (const auto& [tensor, shard] : map) names.insert(shard);
  if (names.size() > kMostShards) {
    return InvalidArgument("weight_map names " + std::to_string(names.size()) +
                           " files; expected at most " + std::to_string(kMostShards));
  }
  std::vector<Shard> shards;
  for (const std::string& name : names) {
    const std::filesystem::path path = folder / name;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return NotFound("shard '" + Printable(name) +
                      "' is missing; expected all files of weight_map beside the index");
    }
    HIPPODROME_ASSIGN_OR_RETURN(auto source, OpenCheckpoint(path.string()));
    shards.push_back({name, std::move(source)});
  }
  return shards;
}

// Errors unless each tensor of the shards lies where the index says, and nowhere else.
absl::Status CheckPlaces(const std::vector<Shard>& shards, const WeightMap& map) {
  std::map<std::string, std::string> places;
  for (const Shard& shard : shards) {
    for (const SourceTensor& tensor : shard.source->tensors()) {
      const auto [first, inserted] = places.try_emplace(tensor.name, shard.name);
      if (inserted) continue;
      return InvalidArgument("tensor '" + Printable(tensor.name) + "' is in two shards, '" +
                             Printable(first->second) + "' and '" + Printable(shard.name) + "'");
    }
  }
  for (const auto& [tensor, shard] : map) {
    const auto place = places.find(tensor);
    if (place != places.end() && place->second == shard) continue;
    const std::string found =
        place == places.end() ? "it is in none" : "it is in '" + Printable(place->second) + "'";
    return InvalidArgument("tensor '" + Printable(tensor) + "' is expected in shard '" +
                           Printable(shard) + "'; " + found);
  }
  for (const auto& [tensor, shard] : places) {
    if (map.contains(tensor)) continue;
    return InvalidArgument("tensor '" + Printable(tensor) + "' of shard '" + Printable(shard) +
                           "' is not in weight_map");
  }
  return absl::OkStatus();
}

class ShardedCheckpoint : public CheckpointSource {
 public:
  explicit ShardedCheckpoint(std::vector<Shard> shards) : shards_(std::move(shards)) {
    lightning_ = shards_[0].source->lightning();
    flax_ = shards_[0].source->flax();
    for (const Shard& shard : shards_) {
      file_bytes_ += shard.source->file_bytes();
      for (size_t i = 0; i < shard.source->tensors().size(); ++i) {
        tensors_.push_back(shard.source->tensors()[i]);
        places_.push_back({shard.source.get(), i});
      }
    }
  }

  absl::Status Read(size_t index, uint64_t first, std::span<float> out) override {
    return places_[index].shard->Read(places_[index].index, first, out);
  }

  bool Same(size_t a, size_t b) const override {
    return places_[a].shard == places_[b].shard &&
           places_[a].shard->Same(places_[a].index, places_[b].index);
  }

 private:
  struct Place {
    CheckpointSource* shard;
    size_t index;  // among its tensors
  };
  std::vector<Shard> shards_;
  std::vector<Place> places_;
};

// Names would be mapped in two ways.
absl::Status CheckOneKind(const std::vector<Shard>& shards) {
  for (const Shard& shard : shards) {
    if (shard.source->flax() == shards[0].source->flax() &&
        shard.source->lightning() == shards[0].source->lightning()) {
      continue;
    }
    return InvalidArgument("shard '" + Printable(shard.name) + "' is of another kind than '" +
                           Printable(shards[0].name) + "'");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenShardedCheckpoint(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(WeightMap map, ReadWeightMap(path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<Shard> shards, OpenShards(folder, map));
  HIPPODROME_RETURN_IF_ERROR(CheckPlaces(shards, map));
  HIPPODROME_RETURN_IF_ERROR(CheckOneKind(shards));
  return std::make_unique<ShardedCheckpoint>(std::move(shards));
}

}  // namespace hippodrome
