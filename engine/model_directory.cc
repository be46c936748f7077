#include "engine/model_directory.h"

#include <utility>

#include "engine/checkpoint/safetensors.h"
#include "engine/status.h"

namespace hippodrome {
namespace {

absl::StatusOr<DType> StoredDtype(const SafetensorsFile& file) {
  const std::string name = "backbone.embeddings.word_embeddings.weight";
  const TensorView* embedding = file.Find(name);
  if (embedding == nullptr) return NotFound(file.path() + ": there is no tensor " + name);
  return embedding->dtype == DType::kBF16 ? DType::kBF16 : DType::kF32;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BpeTokenizer>> LoadTokenizer(const std::string& directory,
                                                            int64_t vocab_size) {
  auto tokenizer = BpeTokenizer::Read(directory);
  if (absl::IsNotFound(tokenizer.status())) return nullptr;
  if (tokenizer.ok() && (*tokenizer)->vocab_size() > vocab_size) {
    return InvalidArgument(
        directory + "/vocab.json has " + std::to_string((*tokenizer)->vocab_size()) +
        " tokens, but config.json says vocab_size " + std::to_string(vocab_size));
  }
  return tokenizer;
}

absl::StatusOr<LoadedModel> LoadModelDirectory(Backend& backend, const std::string& directory,
                                               std::optional<DType> weights,
                                               const HybridH3::Progress& progress) {
  HIPPODROME_ASSIGN_OR_RETURN(H3Config config, ReadH3Config(directory));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  LoadedModel loaded;
  HIPPODROME_ASSIGN_OR_RETURN(loaded.tokenizer, LoadTokenizer(directory, config.vocab_size));
  HIPPODROME_ASSIGN_OR_RETURN(const DType stored, StoredDtype(*file));
  loaded.weights = weights.value_or(stored);
  FileWeights source(*file);
  HIPPODROME_ASSIGN_OR_RETURN(loaded.model,
                              HybridH3::Load(backend, config, source, loaded.weights, progress));
  return loaded;
}

}  // namespace hippodrome
