#include "engine/base/status.h"
#include "tools/convert/models/h3_checkpoint.h"
#include "tools/convert/models/h3_shapes.h"
#include "tools/convert/models/infer_config.h"
#include "tools/convert/models/prepare_model.h"

namespace hippodrome {

absl::StatusOr<PreparedModel> PrepareH3(std::unique_ptr<CheckpointSource> source,
                                        const std::string& config_json,
                                        const ConvertOptions& options) {
  if (!options.layer_gelu.empty()) return InvalidArgument("--layer-gelu is for BiGS models");
  if (options.pad_to.has_value()) return InvalidArgument("--pad-to is for BiGS models");
  const ConfigHints hints{.config_json = config_json,
                          .preset = options.preset,
                          .attention_heads = options.attention_heads};
  HIPPODROME_ASSIGN_OR_RETURN(H3Checkpoint checkpoint, H3Checkpoint::Make(std::move(source)));
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, DecideConfig(checkpoint.shapes(), hints));
  HIPPODROME_RETURN_IF_ERROR(CheckShapes(checkpoint.shapes(), config));
  PreparedModel model{
      .specs = H3TensorSpecs(config, options.matrix_dtype),
      .config_json = ToJson(config),
      .summary =
          std::to_string(config.n_layer) + " layers, d_model " + std::to_string(config.d_model),
      .vocab_size = config.vocab_size,
  };
  HIPPODROME_RETURN_IF_ERROR(CheckExpansion(model.specs, checkpoint.file_bytes()));
  HIPPODROME_RETURN_IF_ERROR(checkpoint.CheckTiedHead());
  for (const TensorSpec& spec : model.specs) {
    // Frequencies are constants.
    if (!spec.name.ends_with("inv_freq")) model.parameters += Elements(spec);
  }
  model.tensors = std::make_unique<H3Checkpoint>(std::move(checkpoint));
  return model;
}

}  // namespace hippodrome
