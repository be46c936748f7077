#include "tools/convert/models/h3_names.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "engine/base/status.h"
#include "tools/convert/models/module_prefixes.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

constexpr std::string_view kLayers = "backbone.layers.";

void ReplacePrefix(std::string& name, std::string_view from, std::string_view to) {
  if (name.starts_with(from)) name = std::string(to).append(name, from.size());
}

// Step 1 and 2.
std::vector<MappedTensor> RenameGenerations(const std::vector<std::string>& names, bool lightning) {
  std::vector<MappedTensor> tensors;
  for (size_t i = 0; i < names.size(); ++i) {
    auto [name, in_model] = RemoveModulePrefixes(names[i]);
    if (lightning && !in_model) continue;
    ReplacePrefix(name, "s4seq.encoder.", "backbone.");
    ReplacePrefix(name, "embedding.", "backbone.embeddings.word_embeddings.");
    ReplacePrefix(name, "backbone.norm.", "backbone.ln_0.");
    tensors.push_back({.name = std::move(name), .source = i});
  }
  return tensors;
}

int64_t CountNamedLayers(const std::vector<MappedTensor>& tensors) {
  int64_t layers = 0;
  for (const MappedTensor& tensor : tensors) {
    if (const auto split = SplitLayerName(tensor.name)) layers = std::max(layers, split->layer + 1);
  }
  return layers;
}

// Step 3 for one name.
std::string MoveNorm(const std::string& name, int64_t layers) {
  constexpr std::string_view kFirst = "backbone.ln_0.";
  if (name.starts_with(kFirst)) {
    return JoinLayerName(0, std::string("norm1.").append(name, kFirst.size()));
  }
  const std::optional<LayerName> split = SplitLayerName(name);
  if (!split) return name;
  const bool norm1 = split->rest.starts_with("norm1.");
  if (!norm1 && !split->rest.starts_with("norm2.")) return name;
  const std::string leaf(split->rest.substr(6));
  if (norm1) return JoinLayerName(split->layer, std::string("norm2.").append(leaf));
  if (split->layer + 1 == layers) return std::string("backbone.ln_f.").append(leaf);
  return JoinLayerName(split->layer + 1, std::string("norm1.").append(leaf));
}

void MoveNorms(std::vector<MappedTensor>& tensors) {
  const bool old = std::any_of(tensors.begin(), tensors.end(), [](const MappedTensor& tensor) {
    return tensor.name == "backbone.ln_0.weight";
  });
  if (!old) return;
  const int64_t layers = CountNamedLayers(tensors);
  for (MappedTensor& tensor : tensors) tensor.name = MoveNorm(tensor.name, layers);
}

// Step 4.
std::vector<MappedTensor> SplitProjections(const std::vector<MappedTensor>& tensors) {
  std::set<int64_t> state_space_layers;
  for (const MappedTensor& tensor : tensors) {
    const std::optional<LayerName> split = SplitLayerName(tensor.name);
    if (split && split->rest.starts_with("mixer.kernel.")) state_space_layers.insert(split->layer);
  }
  constexpr std::string_view kWqkv = "mixer.Wqkv.";
  constexpr std::string_view kOutput = "mixer.out_proj.";
  constexpr std::string_view kParts[] = {"mixer.q_proj.", "mixer.k_proj.", "mixer.v_proj."};
  std::vector<MappedTensor> result;
  for (const MappedTensor& tensor : tensors) {
    const std::optional<LayerName> split = SplitLayerName(tensor.name);
    if (!split || !state_space_layers.contains(split->layer)) {
      result.push_back(tensor);
    } else if (split->rest.starts_with(kWqkv)) {
      const std::string leaf(split->rest.substr(kWqkv.size()));
      for (int part = 0; part < 3; ++part) {
        result.push_back({.name = JoinLayerName(split->layer, std::string(kParts[part]) + leaf),
                          .source = tensor.source,
                          .part = part,
                          .parts = 3});
      }
    } else if (split->rest.starts_with(kOutput)) {
      const std::string leaf(split->rest.substr(kOutput.size()));
      result.push_back({.name = JoinLayerName(split->layer, "mixer.output_linear." + leaf),
                        .source = tensor.source});
    } else {
      result.push_back(tensor);
    }
  }
  return result;
}

absl::Status CheckUniqueH3(const std::vector<MappedTensor>& tensors,
                           const std::vector<std::string>& names) {
  std::map<std::string_view, size_t> seen;
  for (const MappedTensor& tensor : tensors) {
    const auto [first, inserted] = seen.try_emplace(tensor.name, tensor.source);
    if (!inserted) {
      return InvalidArgument("tensors '" + Printable(names[first->second]) + "' and '" +
                             Printable(names[tensor.source]) + "' both stand for '" +
                             Printable(tensor.name) + "'");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<LayerName> SplitLayerName(std::string_view name) {
  if (!name.starts_with(kLayers)) return std::nullopt;
  name.remove_prefix(kLayers.size());
  const size_t digits = name.find('.');
  if (digits == 0 || digits > 4) return std::nullopt;
  LayerName split;
  const auto [end, error] = std::from_chars(name.data(), name.data() + digits, split.layer);
  if (error != std::errc() || end != name.data() + digits || split.layer < 0) return std::nullopt;
  split.rest = name.substr(digits + 1);
  return split;
}

std::string JoinLayerName(int64_t layer, std::string_view rest) {
  return std::string(kLayers) + std::to_string(layer) + "." + std::string(rest);
}

absl::StatusOr<std::vector<MappedTensor>> MapH3Names(const std::vector<std::string>& names,
                                                     bool lightning) {
  std::vector<MappedTensor> tensors = RenameGenerations(names, lightning);
  MoveNorms(tensors);
  tensors = SplitProjections(tensors);
  HIPPODROME_RETURN_IF_ERROR(CheckUniqueH3(tensors, names));
  if (CountNamedLayers(tensors) == 0) {
    return InvalidArgument("no tensor is named backbone.layers.N.*; expected an H3 checkpoint");
  }
  return tensors;
}

}  // namespace hippodrome
