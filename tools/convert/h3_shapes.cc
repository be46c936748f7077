#include "tools/convert/h3_shapes.h"

#include "tools/convert/h3_names.h"

namespace hippodrome {
namespace {

class SpecList {
 public:
  explicit SpecList(DType matrix_dtype) : matrix_dtype_(matrix_dtype) {}

  void Matrix(const std::string& name, int64_t rows, int64_t columns) {
    specs_.push_back({name, matrix_dtype_, {rows, columns}});
  }
  void Vector(const std::string& name, std::vector<int64_t> shape) {
    specs_.push_back({name, DType::kF32, std::move(shape)});
  }
  void Linear(const std::string& name, int64_t out, int64_t in) {
    Matrix(name + ".weight", out, in);
    Vector(name + ".bias", {out});
  }
  void LayerNorm(const std::string& name, int64_t d) {
    Vector(name + ".weight", {d});
    Vector(name + ".bias", {d});
  }
  std::vector<TensorSpec> Take() { return std::move(specs_); }

 private:
  DType matrix_dtype_;
  std::vector<TensorSpec> specs_;
};

void AddStateSpace(const H3Config& config, const std::string& mixer, SpecList& list) {
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
  list.Matrix(kWordEmbeddings, config.padded_vocab_size, config.d_model);
  if (config.max_position_embeddings > 0) {
    list.Vector(kPositionEmbeddings, {config.max_position_embeddings, config.d_model});
  }
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    const std::string mixer = JoinLayerName(layer, "mixer.");
    list.LayerNorm(JoinLayerName(layer, "norm1"), config.d_model);
    if (config.IsAttention(layer)) {
      AddAttention(config, mixer, list);
    } else {
      AddStateSpace(config, mixer, list);
    }
    list.LayerNorm(JoinLayerName(layer, "norm2"), config.d_model);
    list.Linear(JoinLayerName(layer, "mlp.fc1"), config.d_inner, config.d_model);
    list.Linear(JoinLayerName(layer, "mlp.fc2"), config.d_model, config.d_inner);
  }
  list.LayerNorm("backbone.ln_f", config.d_model);
  return list.Take();
}

}  // namespace hippodrome
