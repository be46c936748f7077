// A model as it lies on disk: config.json, model.safetensors, and tokenizer files where it has
// them.
#ifndef HIPPODROME_ENGINE_MODEL_DIRECTORY_H_
#define HIPPODROME_ENGINE_MODEL_DIRECTORY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/config/config.h"
#include "engine/models/bigs/bigs.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/wordpiece.h"
#include "kernels/backend.h"

namespace hippodrome {

// Differs where one of the files that a model is loaded from differs in size or time, or is there
// or not. Reads none of them.
std::string FingerprintModel(const std::string& directory);

struct LoadedDecoder {
  std::unique_ptr<HybridH3> model;
  std::unique_ptr<BpeTokenizer> tokenizer;  // null without tokenizer files
  DType weights = DType::kF32;              // of the packed matrices
};

// Loads the model in `directory` into `backend`, which must outlive it. `weights` asks for
// matrices of a type of kWeightTypes; by default they are as stored, or kBF16 where a
// device would take longer with integers.
// Errors name the file, and the field or tensor, with what was expected.
absl::StatusOr<LoadedDecoder> LoadDecoderDirectory(Backend& backend, const std::string& directory,
                                                   std::optional<DType> weights = std::nullopt,
                                                   const HybridH3::Progress& progress = {});

// The model in `directory`, to draft for `model`: its tokens must be the same. Errors: of loading
// it; kInvalidArgument names a token that differs.
absl::StatusOr<std::unique_ptr<HybridH3>> LoadDraftModel(Backend& backend,
                                                         const std::string& directory,
                                                         const LoadedDecoder& model,
                                                         std::optional<DType> weights);

// The tokenizer of `directory`, or null where it has no tokenizer files. Errors: files that are not
// a tokenizer of at most `vocab_size` ids.
absl::StatusOr<std::unique_ptr<BpeTokenizer>> LoadBpe(const std::string& directory,
                                                      int64_t vocab_size);

struct LoadedEncoder {
  std::unique_ptr<Bigs> model;
  std::unique_ptr<WordPieceTokenizer> tokenizer;  // null without vocab.txt
  DType weights = DType::kF32;                    // of the packed matrices
};

// The same for an encoder.
absl::StatusOr<LoadedEncoder> LoadEncoderDirectory(Backend& backend, const std::string& directory,
                                                   std::optional<DType> weights = std::nullopt,
                                                   const Bigs::Progress& progress = {});

// The tokenizer of an encoder's `directory`, or null where it has no vocab.txt. Errors: a file that
// is not a vocabulary of at most `vocab_size` tokens.
absl::StatusOr<std::unique_ptr<WordPieceTokenizer>> LoadWordPiece(const std::string& directory,
                                                                  int64_t vocab_size);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODEL_DIRECTORY_H_
