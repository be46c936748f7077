// The tokenizer of a checkpoint.
#ifndef HIPPODROME_TOOLS_CONVERT_TOKENIZER_FILES_H_
#define HIPPODROME_TOOLS_CONVERT_TOKENIZER_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

// A file as it shall stand in the model directory.
struct TextFile {
  std::string name;
  std::string text;
};

// The tokenizers of the two families: byte-level BPE, from DIR/vocab.json and DIR/merges.txt or
// DIR/gpt2-encoder.json and DIR/gpt2-vocab.bpe; and WordPiece, from DIR/vocab.txt or
// DIR/bert-base-uncased-vocab.txt. Errors: kNotFound when there is none of these; kInvalidArgument
// when it is malformed or has ids of `vocab_size` and above.
absl::StatusOr<std::vector<TextFile>> ReadBpeFiles(const std::string& directory,
                                                   int64_t vocab_size);
absl::StatusOr<std::vector<TextFile>> ReadWordPieceFiles(const std::string& directory,
                                                         int64_t vocab_size);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TOKENIZER_FILES_H_
