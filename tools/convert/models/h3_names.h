// From the tensor names of any generation of H3 checkpoints to those of the published code.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_H3_NAMES_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_H3_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// A tensor under its current name: the whole of tensor `source`, or one of `parts` equal blocks of
// its rows.
struct MappedTensor {
  std::string name;
  size_t source = 0;
  int part = 0;
  int parts = 1;
};

// Maps the names of a file (index in `names` = MappedTensor::source):
// 1. RemoveModulePrefixes(); Lightning: only names with the prefix "model." count.
// 2. s4seq.encoder.X -> backbone.X; embedding.X -> backbone.embeddings.word_embeddings.X;
//    backbone.norm.X -> backbone.ln_0.X.
// 3. When backbone.ln_0 now exists, LayerNorm came after the addition: ln_0 is norm1 of layer 0,
//    norm1 of layer l its norm2, norm2 of layer l norm1 of layer l + 1 (of the last one: ln_f).
// 4. mixer.Wqkv and mixer.out_proj of a layer with mixer.kernel.* are q_proj, k_proj, v_proj and
//    output_linear.
// Errors: kInvalidArgument when two names become one, or nothing of a model is left.
absl::StatusOr<std::vector<MappedTensor>> MapH3Names(const std::vector<std::string>& names,
                                                     bool lightning);

// The N and X of "backbone.layers.N.X"; nothing for other names and for N over 9999.
struct LayerName {
  int64_t layer = 0;
  std::string_view rest;  // points into the argument
};
std::optional<LayerName> SplitLayerName(std::string_view name);
std::string JoinLayerName(int64_t layer, std::string_view rest);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_H3_NAMES_H_
