// Every tensor that a BiGS model of a given configuration has.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_SHAPES_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_SHAPES_H_

#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "tools/convert/models/shape_map.h"

namespace hippodrome {

inline constexpr char kBigsWords[] = "bigs.embeddings.word_embeddings.weight";
inline constexpr char kBigsPositions[] = "bigs.embeddings.position_embeddings.weight";
inline constexpr char kBigsTypes[] = "bigs.embeddings.token_type_embeddings.weight";
inline constexpr char kBigsPooler[] = "bigs.pooler.dense.weight";
inline constexpr char kBigsDecoder[] = "cls.predictions.decoder.weight";

// Tensors that a model may carry without needing them.
struct BigsExtras {
  bool positions = true;  // the table of a model that adds no positions
  bool pooler = false;    // of a head that does not pool
};

// "bigs.encoder.layer.3.REST".
std::string BigsLayerName(int64_t layer, const std::string& rest);

// Names, shapes and the type to store them in: matrices of linear layers and the word embedding as
// `matrix_dtype`, all else F32. Tied copies are not listed. In the order of the published
// code, which is that of every model.safetensors that is written.
std::vector<TensorSpec> BigsTensorSpecs(const BigsConfig& config, DType matrix_dtype,
                                        const BigsExtras& extras);

// Those that a checkpoint has.
BigsExtras FindExtras(const ShapeMap& shapes);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_SHAPES_H_
