#include "tools/convert/models/h3_shapes.h"

#include "tools/convert/models/h3_names.h"
#include "tools/convert/models/spec_list.h"

namespace hippodrome {
namespace {

void AddH3Mixer(const H3Config& config, const std::string& mixer, SpecList& list) {
  const int64_t d = config.d_model;
  const int64_t modes = config.d_state / 2;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "output_linear"}) {
    list.Linear(mixer + name, d, d);
  }
  list.Vector(mixer + "ssm_k_D", {d});
  list.Vector(mixer + "ssm_k_kernel.kernel.B", {d, config.d_state});
  list.Vector(mixer + "ssm_k_kernel.kernel.C", {1, d, config.d_state});
  list.Vector(mixer + "D", {config.heads()});
  list.Vector(mixer + "kernel.kernel.log_dt", {config.heads()});
  list.Vector(mixer + "kernel.kernel.inv_A_real", {config.n_ssm, modes});
  list.Vector(mixer + "kernel.kernel.A_imag", {config.n_ssm, modes});
  list.Vector(mixer + "kernel.kernel.B", {config.n_ssm, modes, 2});
  list.Vector(mixer + "kernel.kernel.C", {1, config.heads(), modes, 2});
}

void AddAttention(const H3Config& config, const std::string& mixer, SpecList& list) {
  list.Linear(mixer + "Wqkv", 3 * config.d_model, config.d_model);
  list.Linear(mixer + "out_proj", config.d_model, config.d_model);
  if (config.rotary_dim > 0) list.Vector(mixer + "rotary_emb.inv_freq", {config.rotary_dim / 2});
}

}  // namespace

std::vector<TensorSpec> H3TensorSpecs(const H3Config& config, DType matrix_dtype) {
  SpecList list(matrix_dtype);
  list.EmbeddingOrHead(kWordEmbeddings, config.padded_vocab_size, config.d_model);
  if (config.max_position_embeddings > 0) {
    list.Vector(kPositionEmbeddings, {config.max_position_embeddings, config.d_model});
  }
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    const std::string mixer = JoinLayerName(layer, "mixer.");
    list.LayerNorm(JoinLayerName(layer, "norm1"), config.d_model);
    if (config.IsAttention(layer)) {
      AddAttention(config, mixer, list);
    } else {
      AddH3Mixer(config, mixer, list);
    }
    list.LayerNorm(JoinLayerName(layer, "norm2"), config.d_model);
    list.Linear(JoinLayerName(layer, "mlp.fc1"), config.d_inner, config.d_model);
    list.Linear(JoinLayerName(layer, "mlp.fc2"), config.d_model, config.d_inner);
  }
  list.LayerNorm("backbone.ln_f", config.d_model);
  return list.Take();
}

}  // namespace hippodrome
