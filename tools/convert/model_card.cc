#include "tools/convert/model_card.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "tools/command_line/text_file.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

constexpr size_t kLargestReadme = size_t{16} << 20;
constexpr char kMark[] =
    "<!-- Written by hippodrome, which replaces this file; without this line the file is yours. "
    "-->\n";

// A line of the table.
using Fact = std::pair<std::string, std::string>;

// "6,201,088".
std::string Grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string WeightsText(DType weights) {
  return weights == DType::kF16 ? "f16" : WeightsName(weights);
}

std::string AttentionText(const H3Config& config) {
  if (config.attention_layers.empty()) return "none";
  std::string layers;
  for (const int64_t layer : config.attention_layers) {
    layers += (layers.empty() ? "" : ", ") + std::to_string(layer);
  }
  return "in layers " + layers + ", counted from 0, " + std::to_string(config.attention_heads) +
         " heads";
}

struct Description {
  std::string title;
  std::vector<Fact> facts;
};

Description Describe(const H3Config& config) {
  return {.title = "A decoder of the H3 family",
          .facts = {{"mixer", Name(config.mixer)},
                    {"layers", Grouped(config.n_layer)},
                    {"attention", AttentionText(config)},
                    {"width", Grouped(config.d_model)},
                    {"vocabulary", Grouped(config.vocab_size)}}};
}

Description Describe(const BigsConfig& config) {
  return {.title = "An encoder of the BiGS family",
          .facts = {{"class", Name(config.head)},
                    {"layers", Grouped(config.num_hidden_layers)},
                    {"width", Grouped(config.hidden_size)},
                    {"vocabulary", Grouped(config.vocab_size)},
                    {"longest input", Grouped(config.max_position_embeddings)}}};
}

absl::StatusOr<Description> DescribeConfig(const std::string& config_json) {
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ParseModelFamily(config_json));
  if (family == ModelFamily::kBigs) {
    HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ParseBigsConfig(config_json));
    return Describe(config);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, ParseH3Config(config_json));
  return Describe(config);
}

}  // namespace

absl::StatusOr<std::string> ModelCardText(const ModelCard& card) {
  HIPPODROME_ASSIGN_OR_RETURN(Description description, DescribeConfig(card.config_json));
  description.facts.emplace_back("parameters", Grouped(card.parameters));
  description.facts.emplace_back("weights", WeightsText(card.weights));
  std::string text = kMark + ("# " + description.title) + "\n\n| | |\n|---|---|\n";
  for (const auto& [name, value] : description.facts) text += "| " + name + " | " + value + " |\n";
  return text + "\n## Made from\n\n" + card.origin +
         "\n\n## Serve it\n\nIn this directory:\n\n    " + card.serve +
         "\n\nHow good it is must be measured: `hippodrome eval` does that, on data that it was "
         "not "
         "trained on.\n";
}

std::string CardFileName(const std::string& path) {
  std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  std::string name = Printable(whole.filename().string());
  std::ranges::replace(name, '`', '?');
  return "`" + name + "`";
}

absl::StatusOr<std::optional<std::string>> ReadOwnReadme(const std::string& directory) {
  auto text = ReadSmallFile(directory + "/" + kModelCardFile, kLargestReadme);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return text.status();
  if (text->starts_with(kMark)) return std::nullopt;
  return *std::move(text);
}

absl::Status AddModelCard(const std::string& card, const std::string& target,
                          StagedDirectory& staged) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::optional<std::string> own, ReadOwnReadme(target));
  if (own.has_value()) return absl::OkStatus();
  return WriteTextFile(staged.Add(kModelCardFile), card);
}

}  // namespace hippodrome
