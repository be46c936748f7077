// From the tensor names of BiGS checkpoints, PyTorch or Flax, to those of the published PyTorch
// code.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_NAMES_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// A tensor under its published name.
struct BigsTensor {
  std::string name;
  size_t source = 0;        // its index among the names
  bool transposed = false;  // the file has [in, out]
};

// True for names of an encoder's layers: "bigs.encoder.layer.0.dv.weight",
// "s4_bert/encoder/layer/0/dv/kernel".
bool IsBigsName(const std::string& name);

// Maps the names of a file:
// 1. Flax: a/b/kernel -> a.b.weight (transposed); scale and embedding -> weight; fs4/X and bs4/X ->
//    fs4.kernel.X and bs4.kernel.X, but for D. PyTorch: RemoveModulePrefixes().
// 2. P.embeddings.X, P.encoder.X and P.pooler.X -> bigs.embeddings.X and so on, where P, which may
//    be empty, is the one word before embeddings.word_embeddings.weight.
// 3. bigs.embeddings.position_ids, a constant, is left out.
// Errors: kInvalidArgument when two names become one, or there is no word embedding or no layer.
absl::StatusOr<std::vector<BigsTensor>> MapBigsNames(const std::vector<std::string>& names,
                                                     bool flax);

// Where Flax has the tensor of a published name and this number of dimensions: step 1 backwards,
// with s4_bert in place of bigs.
struct FlaxPlace {
  std::string path;
  bool transposed = false;  // Flax has [in, out]
};
FlaxPlace PlaceInFlax(const std::string& name, size_t dimensions);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_BIGS_NAMES_H_
