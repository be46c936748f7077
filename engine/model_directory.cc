#include "engine/model_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <span>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "kernels/quantized_group.h"

namespace hippodrome {
namespace {

absl::Status CheckVocabSize(const std::string& file, int64_t tokens, int64_t vocab_size) {
  if (tokens <= vocab_size) return absl::OkStatus();
  return InvalidArgument(file + " has " + std::to_string(tokens) +
                         " tokens, but config.json says vocab_size " + std::to_string(vocab_size));
}

// Null where the directory has no tokenizer. `file`: what lists its tokens.
template <typename Tokenizer>
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& directory,
                                                         const std::string& file,
                                                         int64_t vocab_size) {
  auto tokenizer = Tokenizer::Read(directory);
  if (absl::IsNotFound(tokenizer.status())) return nullptr;
  if (!tokenizer.ok()) return tokenizer;
  HIPPODROME_RETURN_IF_ERROR(
      CheckVocabSize(directory + "/" + file, (*tokenizer)->vocab_size(), vocab_size));
  return tokenizer;
}

// The type in which matrices that are stored as `stored` are multiplied. Devices, which keep
// activations in bf16, take longer for prompts and batches with integers (docs/gpu-model.md).
DType DefaultWeights(Backend& backend, DType stored) {
  if (!IsQuantized(stored)) return stored;
  const DType activations = backend.NewActivations(1, 1, stored).view.dtype;
  return activations == DType::kBF16 ? DType::kBF16 : stored;
}

}  // namespace

std::string FingerprintModel(const std::string& directory) {
  std::string fingerprint;
  for (const char* name :
       {"config.json", "model.safetensors", "vocab.json", "merges.txt", "vocab.txt"}) {
    struct stat file;
    if (stat((directory + "/" + name).c_str(), &file) != 0) continue;
    fingerprint += fmt::format("{} {} {} {}.{:09}; ", name, file.st_ino, file.st_size,
                               file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  }
  return fingerprint;
}

absl::StatusOr<std::unique_ptr<BpeTokenizer>> LoadBpe(const std::string& directory,
                                                      int64_t vocab_size) {
  return LoadTokenizer<BpeTokenizer>(directory, "vocab.json", vocab_size);
}

absl::StatusOr<std::unique_ptr<WordPieceTokenizer>> LoadWordPiece(const std::string& directory,
                                                                  int64_t vocab_size) {
  return LoadTokenizer<WordPieceTokenizer>(directory, "vocab.txt", vocab_size);
}

absl::StatusOr<LoadedDecoder> LoadDecoderDirectory(Backend& backend, const std::string& directory,
                                                   std::optional<DType> weights,
                                                   const HybridH3::Progress& progress) {
  HIPPODROME_ASSIGN_OR_RETURN(H3Config config, ReadH3Config(directory));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  LoadedDecoder loaded;
  HIPPODROME_ASSIGN_OR_RETURN(loaded.tokenizer, LoadBpe(directory, config.vocab_size));
  HIPPODROME_ASSIGN_OR_RETURN(const DType stored,
                              StoredWeights(*file, "backbone.embeddings.word_embeddings.weight"));
  loaded.weights = weights.value_or(DefaultWeights(backend, stored));
  FileWeights source(*file);
  HIPPODROME_ASSIGN_OR_RETURN(loaded.model,
                              HybridH3::Load(backend, config, source, loaded.weights, progress));
  return loaded;
}

absl::StatusOr<std::unique_ptr<HybridH3>> LoadDraftModel(Backend& backend,
                                                         const std::string& directory,
                                                         const LoadedDecoder& model,
                                                         std::optional<DType> weights) {
  HIPPODROME_ASSIGN_OR_RETURN(LoadedDecoder draft,
                              LoadDecoderDirectory(backend, directory, weights));
  const int64_t vocab = model.model->config().vocab_size;
  const bool texts = draft.tokenizer != nullptr && model.tokenizer != nullptr;
  for (int32_t id = 0; texts && id < vocab; ++id) {
    const std::string& token = draft.tokenizer->Bytes(id);
    const std::string& expected = model.tokenizer->Bytes(id);
    if (token == expected) continue;
    return InvalidArgument(directory + ": token " + std::to_string(id) + " is \"" + OneLine(token) +
                           "\", expected \"" + OneLine(expected) +
                           "\", as of the model that it is to draft for");
  }
  return std::move(draft.model);
}

absl::StatusOr<LoadedEncoder> LoadEncoderDirectory(Backend& backend, const std::string& directory,
                                                   std::optional<DType> weights,
                                                   const Bigs::Progress& progress) {
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadBigsConfig(directory));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  LoadedEncoder loaded;
  HIPPODROME_ASSIGN_OR_RETURN(loaded.tokenizer, LoadWordPiece(directory, config.vocab_size));
  HIPPODROME_ASSIGN_OR_RETURN(const DType stored,
                              StoredWeights(*file, "bigs.embeddings.word_embeddings.weight"));
  loaded.weights = weights.value_or(DefaultWeights(backend, stored));
  FileWeights source(*file);
  HIPPODROME_ASSIGN_OR_RETURN(loaded.model,
                              Bigs::Load(backend, config, source, loaded.weights, progress));
  return loaded;
}

}  // namespace hippodrome
