#include "tools/convert/models/bigs_names.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "engine/base/status.h"
#include "tools/convert/models/module_prefixes.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

constexpr std::string_view kWords = "embeddings.word_embeddings.weight";

// Step 1: the folder "a/b/" and the leaf of a path.
BigsTensor RenameFlax(const std::string& path, size_t source) {
  const size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::string leaf = path.substr(folder.size());
  std::replace(folder.begin(), folder.end(), '/', '.');
  const bool ssm = folder.ends_with(".fs4.") || folder.ends_with(".bs4.");
  if (ssm && leaf != "D") folder += "kernel.";
  const bool transposed = leaf == "kernel";
  if (transposed || leaf == "scale" || leaf == "embedding") leaf = "weight";
  return {.name = folder + leaf, .source = source, .transposed = transposed};
}

// The P of step 2 with its dot.
std::optional<std::string> FindPrefix(const std::vector<BigsTensor>& tensors) {
  for (const BigsTensor& tensor : tensors) {
    if (!tensor.name.ends_with(kWords)) continue;
    std::string prefix = tensor.name.substr(0, tensor.name.size() - kWords.size());
    if (prefix.empty() || prefix.find('.') == prefix.size() - 1) return prefix;
  }
  return std::nullopt;
}

void ReplaceModelPrefix(const std::string& prefix, std::string& name) {
  for (const char* part : {"embeddings.", "encoder.", "pooler."}) {
    if (!name.starts_with(prefix + part)) continue;
    name = "bigs." + name.substr(prefix.size());
    return;
  }
}

absl::Status CheckUnique(const std::vector<BigsTensor>& tensors,
                         const std::vector<std::string>& names) {
  std::map<std::string_view, size_t> seen;
  for (const BigsTensor& tensor : tensors) {
    const auto [first, inserted] = seen.try_emplace(tensor.name, tensor.source);
    if (inserted) continue;
    return InvalidArgument("tensors '" + Printable(names[first->second]) + "' and '" +
                           Printable(names[tensor.source]) + "' both stand for '" +
                           Printable(tensor.name) + "'");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsBigsName(const std::string& name) {
  return name.find("encoder.layer.") != std::string::npos ||
         name.find("encoder/layer/") != std::string::npos;
}

absl::StatusOr<std::vector<BigsTensor>> MapBigsNames(const std::vector<std::string>& names,
                                                     bool flax) {
  std::vector<BigsTensor> tensors;
  for (size_t i = 0; i < names.size(); ++i) {
    tensors.push_back(flax ? RenameFlax(names[i], i)
                           : BigsTensor{.name = RemoveModulePrefixes(names[i]).name, .source = i});
  }
  const std::optional<std::string> prefix = FindPrefix(tensors);
  if (prefix) {
    for (BigsTensor& tensor : tensors) ReplaceModelPrefix(*prefix, tensor.name);
  }
  const bool layers = std::any_of(tensors.begin(), tensors.end(), [](const BigsTensor& tensor) {
    return tensor.name.starts_with("bigs.encoder.layer.");
  });
  if (!prefix || !layers) {
    return InvalidArgument(
        "no tensors are named bigs.embeddings.word_embeddings.weight and bigs.encoder.layer.N.* "
        "(Flax: s4_bert/embeddings/word_embeddings/embedding, s4_bert/encoder/layer/N/*); expected "
        "a BiGS checkpoint");
  }
  std::erase_if(tensors, [](const BigsTensor& tensor) {
    return tensor.name == "bigs.embeddings.position_ids";
  });
  HIPPODROME_RETURN_IF_ERROR(CheckUnique(tensors, names));
  return tensors;
}

FlaxPlace PlaceInFlax(const std::string& name, size_t dimensions) {
  constexpr std::string_view kPublished = "bigs.", kKernel = "s4.kernel.", kWeight = "weight";
  FlaxPlace place{.path = name};
  if (name.starts_with(kPublished)) place.path.replace(0, kPublished.size(), "s4_bert.");
  if (const size_t kernel = place.path.find(kKernel); kernel != std::string::npos) {
    place.path.replace(kernel, kKernel.size(), "s4.");
  }
  if (place.path.ends_with(kWeight)) {
    const bool embedding = name.ends_with("_embeddings.weight");
    place.transposed = !embedding && dimensions == 2;
    const char* matrix = embedding ? "embedding" : "kernel";
    place.path.replace(place.path.size() - kWeight.size(), kWeight.size(),
                       dimensions == 2 ? matrix : "scale");
  }
  std::replace(place.path.begin(), place.path.end(), '.', '/');
  return place;
}

}  // namespace hippodrome
