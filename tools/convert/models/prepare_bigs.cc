#include "engine/base/status.h"
#include "tools/convert/models/bigs_checkpoint.h"
#include "tools/convert/models/bigs_shapes.h"
#include "tools/convert/models/decide_bigs_config.h"
#include "tools/convert/models/prepare_model.h"

namespace hippodrome {
namespace {

// A tensor that a file may have twice.
struct Copy {
  std::string name;
  std::string original;
};

// The copies in a checkpoint of this configuration.
std::vector<Copy> ListCopies(const ShapeMap& shapes, const BigsConfig& config) {
  std::vector<Copy> copies;
  for (const Copy& copy : {Copy{kBigsDecoder, kBigsWords},
                           Copy{"cls.predictions.decoder.bias", "cls.predictions.bias"}}) {
    if (copy.name == kBigsDecoder && !config.tie_word_embeddings) continue;
    if (shapes.contains(copy.name) && shapes.contains(copy.original)) copies.push_back(copy);
  }
  return copies;
}

absl::Status CheckShapes(const std::vector<TensorSpec>& specs, const std::vector<Copy>& copies,
                         const ShapeMap& shapes) {
  ShapeMap left = shapes;
  for (const Copy& copy : copies) {
    HIPPODROME_RETURN_IF_ERROR(
        TakeShapes({{copy.name, DType::kF32, shapes.at(copy.original)}}, left));
  }
  HIPPODROME_RETURN_IF_ERROR(TakeShapes(specs, left));
  return CheckNoneLeft(left, "this BiGS model");
}

absl::Status CheckCopies(const std::vector<Copy>& copies, BigsCheckpoint& checkpoint) {
  for (const Copy& copy : copies) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool equal, checkpoint.Equal(copy.name, copy.original));
    if (equal) continue;
    const char* advice =
        copy.name == kBigsDecoder ? " unless the config says \"tie_word_embeddings\": false" : "";
    return InvalidArgument("tensor '" + copy.name + "' differs from '" + copy.original +
                           "'; expected a copy of it" + advice);
  }
  return absl::OkStatus();
}

BigsHints Hints(const BigsCheckpoint& checkpoint, const std::string& config_json,
                const ConvertOptions& options) {
  return {.config_json = config_json,
          .preset = options.preset,
          .attention_heads = options.attention_heads,
          .layer_gelu = options.layer_gelu,
          .pad_to = options.pad_to,
          .flax = checkpoint.flax()};
}

}  // namespace

absl::StatusOr<PreparedModel> PrepareBigs(std::unique_ptr<CheckpointSource> source,
                                          const std::string& config_json,
                                          const ConvertOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(BigsCheckpoint checkpoint, BigsCheckpoint::Make(std::move(source)));
  const ShapeMap& shapes = checkpoint.shapes();
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config,
                              DecideBigsConfig(shapes, Hints(checkpoint, config_json, options)));
  const std::vector<Copy> copies = ListCopies(shapes, config);
  PreparedModel model{
      .specs = BigsTensorSpecs(config, options.matrix_dtype, FindExtras(shapes)),
      .config_json = ToJson(config),
      .summary = std::string(Name(config.head)) + ", " + std::to_string(config.num_hidden_layers) +
                 " layers, hidden_size " + std::to_string(config.hidden_size),
      .vocab_size = config.vocab_size,
  };
  HIPPODROME_RETURN_IF_ERROR(CheckShapes(model.specs, copies, shapes));
  HIPPODROME_RETURN_IF_ERROR(CheckExpansion(model.specs, checkpoint.file_bytes()));
  HIPPODROME_RETURN_IF_ERROR(CheckCopies(copies, checkpoint));
  for (const TensorSpec& spec : model.specs) model.parameters += Elements(spec);
  model.tensors = std::make_unique<BigsCheckpoint>(std::move(checkpoint));
  return model;
}

}  // namespace hippodrome
