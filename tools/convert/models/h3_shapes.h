// Every tensor that an H3 model of a given configuration has.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_H3_SHAPES_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_H3_SHAPES_H_

#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/config/config.h"

namespace hippodrome {

inline constexpr char kWordEmbeddings[] = "backbone.embeddings.word_embeddings.weight";
inline constexpr char kPositionEmbeddings[] = "backbone.embeddings.position_embeddings.weight";
inline constexpr char kHead[] = "lm_head.weight";

// Names, shapes and the type to store them in: matrices of linear layers and the word embedding as
// `matrix_dtype`, all else F32. The head is tied and not listed. In the order of the layers,
// which is that of every model.safetensors that is written.
std::vector<TensorSpec> H3TensorSpecs(const H3Config& config, DType matrix_dtype);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_H3_SHAPES_H_
