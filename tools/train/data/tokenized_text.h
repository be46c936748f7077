// Texts as token ids, and the files that hold them.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_TOKENIZED_TEXT_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_TOKENIZED_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

enum class TokenizerKind : uint8_t { kBpe, kWordPiece };

// Documents, one behind the other. In byte-pair tokens each ends with <|endoftext|>. WordPiece has
// no such token: there the ends of sentences and documents are kept beside the tokens.
struct TokenizedText {
  TokenizerKind kind = TokenizerKind::kBpe;
  int64_t vocab_size = 0;  // ids are below
  std::vector<int32_t> tokens;
  std::vector<int64_t> sentence_ends;  // places in `tokens`, each above the one before; the last
                                       // one is the end of `tokens`
  std::vector<int64_t> document_ends;  // places in `sentence_ends`, likewise
};

// A safetensors file: "tokens" I32 [n] and, of WordPiece, "sentence_ends" and "document_ends" I64;
// metadata "tokenizer" (bpe or wordpiece) and "vocab_size". Errors: as of SafetensorsWriter.
absl::Status WriteTokenFile(const std::string& path, const TokenizedText& text);

// The texts of all files, joined. Errors: of reading; kInvalidArgument naming the file for contents
// that are not as above, and for files of different tokenizers or vocabulary sizes.
absl::StatusOr<TokenizedText> ReadTokenFiles(const std::vector<std::string>& paths);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_TOKENIZED_TEXT_H_
