#include "tools/convert/models/infer_config.h"

#include <algorithm>

#include "engine/base/status.h"
#include "tools/convert/models/h3_names.h"
#include "tools/convert/models/h3_shapes.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

absl::Status ListLayers(const ShapeMap& shapes, H3Config& config) {
  for (const auto& [name, shape] : shapes) {
    if (const auto split = SplitLayerName(name)) {
      config.n_layer = std::max(config.n_layer, split->layer + 1);
    }
  }
  if (config.n_layer == 0) return InvalidArgument("no tensor is named backbone.layers.N.*");
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    if (shapes.contains(JoinLayerName(layer, "mixer.Wqkv.weight"))) {
      config.attention_layers.push_back(layer);
    } else if (!shapes.contains(JoinLayerName(layer, "mixer.q_proj.weight"))) {
      return InvalidArgument("layer " + std::to_string(layer) +
                             " has neither mixer.q_proj.weight " +
                             "(H3) nor mixer.Wqkv.weight (attention)");
    }
  }
  return absl::OkStatus();
}

// Sizes of the state spaces, from the first layer that has them.
absl::Status InferStateSpace(const ShapeMap& shapes, H3Config& config) {
  int64_t layer = 0;
  while (layer < config.n_layer && config.IsAttention(layer)) ++layer;
  config.n_ssm = config.d_model;
  if (layer == config.n_layer) return absl::OkStatus();
  const std::string mixer = JoinLayerName(layer, "mixer.");
  HIPPODROME_ASSIGN_OR_RETURN(const auto skip, ShapeOf(shapes, mixer + "D", 1));
  HIPPODROME_ASSIGN_OR_RETURN(const auto modes,
                              ShapeOf(shapes, mixer + "kernel.kernel.inv_A_real", 2));
  if (config.d_model % skip[0] != 0) {
    return InvalidArgument("tensor '" + mixer + "D' has " + std::to_string(skip[0]) +
                           " rows; expected a divisor of d_model " +
                           std::to_string(config.d_model));
  }
  config.head_dim = config.d_model / skip[0];
  config.n_ssm = modes[0];
  config.d_state = 2 * modes[1];
  return absl::OkStatus();
}

absl::Status InferRotary(const ShapeMap& shapes, H3Config& config) {
  if (config.attention_layers.empty()) return absl::OkStatus();
  const std::string name = JoinLayerName(config.attention_layers[0], "mixer.rotary_emb.inv_freq");
  if (!shapes.contains(name)) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const auto frequencies, ShapeOf(shapes, name, 1));
  config.rotary_dim = 2 * frequencies[0];
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<H3Config> InferConfig(const ShapeMap& shapes) {
  H3Config config;
  HIPPODROME_ASSIGN_OR_RETURN(const auto words, ShapeOf(shapes, kWordEmbeddings, 2));
  config.padded_vocab_size = words[0];
  config.vocab_size = words[0] == 50264 ? 50257 : words[0];
  config.d_model = words[1];
  if (shapes.contains(kPositionEmbeddings)) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto positions, ShapeOf(shapes, kPositionEmbeddings, 2));
    config.max_position_embeddings = positions[0];
  }
  HIPPODROME_RETURN_IF_ERROR(ListLayers(shapes, config));
  HIPPODROME_ASSIGN_OR_RETURN(const auto inner,
                              ShapeOf(shapes, JoinLayerName(0, "mlp.fc1.weight"), 2));
  config.d_inner = inner[0];
  HIPPODROME_RETURN_IF_ERROR(InferStateSpace(shapes, config));
  HIPPODROME_RETURN_IF_ERROR(InferRotary(shapes, config));
  return config;
}

absl::Status CheckShapes(const ShapeMap& shapes, const H3Config& config) {
  ShapeMap left = shapes;
  HIPPODROME_RETURN_IF_ERROR(TakeShapes(H3TensorSpecs(config, DType::kF32), left));
  const auto head = left.find(kHead);
  if (head != left.end()) {
    const std::vector<int64_t> tied = {config.padded_vocab_size, config.d_model};
    if (head->second != tied) {
      return InvalidArgument("tensor '" + std::string(kHead) + "' has shape " +
                             ShapeText(head->second) + "; expected that of the embedding, " +
                             ShapeText(tied) + " (heads that are not tied are not supported)");
    }
    left.erase(head);
  }
  return CheckNoneLeft(left, "an H3 model");
}

}  // namespace hippodrome
