// A small BiGS model with random weights in every form in which such models are published.
#ifndef HIPPODROME_TESTS_TOOLS_CONVERT_BIGS_FILES_H_
#define HIPPODROME_TESTS_TOOLS_CONVERT_BIGS_FILES_H_

#include <string>
#include <vector>

#include "engine/config/bigs_config.h"
#include "tests/tools/convert/model_file.h"

namespace hippodrome {

// A masked-LM model in which every size differs.
BigsConfig SmallBigs();

// Its weights under the PyTorch names, with the pooler that PyTorch models always have.
ModelFile RandomBigs(const BigsConfig& config);

// The bytes of files. The torch pickle also has position_ids and the tied decoder, which shares its
// storages.
std::string BigsZipFile(const ModelFile& model);
std::string BigsLegacyFile(const ModelFile& model);
// The tree of Flax under `prefix`.
std::string BigsFlaxFile(const ModelFile& model, const std::string& prefix = "s4_bert");

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_CONVERT_BIGS_FILES_H_
