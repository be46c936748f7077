// The tokenizer of a checkpoint.
#ifndef HIPPODROME_TOOLS_CONVERT_TOKENIZER_FILES_H_
#define HIPPODROME_TOOLS_CONVERT_TOKENIZER_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hippodrome {

// Texts of a byte-level BPE tokenizer, as they stand in vocab.json and merges.txt.
struct TokenizerFiles {
  std::string vocab_json;
  std::string merges;
};

// Reads DIR/vocab.json and DIR/merges.txt, or DIR/gpt2-encoder.json and DIR/gpt2-vocab.bpe. Errors:
// kNotFound when neither pair is there; kInvalidArgument when they are malformed or have ids of
// `vocab_size` and above.
absl::StatusOr<TokenizerFiles> ReadTokenizerFiles(const std::string& directory, int64_t vocab_size);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TOKENIZER_FILES_H_
