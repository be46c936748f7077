// From token ids to text that a client may see.
#ifndef HIPPODROME_SERVER_BATCHING_TEXT_DECODER_H_
#define HIPPODROME_SERVER_BATCHING_TEXT_DECODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/utf8_stream.h"
#include "server/batching/stop_matcher.h"

namespace hippodrome {

// Bytes of tokens -> whole UTF-8 characters -> text before the first stop string. Not thread-safe.
class TextDecoder {
 public:
  // `tokenizer` may be null, then all text is empty; otherwise it must outlive the decoder.
  TextDecoder(const BpeTokenizer* tokenizer, std::vector<std::string> stops);

  // Adds one token; returns the text that is now certain.
  std::string Append(int32_t token);
  // The tokens are complete: the rest of the text. May find a stop string.
  std::string Finish();
  // True once a stop string was found: the text is complete.
  bool stopped() const { return stops_.stopped(); }

 private:
  const BpeTokenizer* tokenizer_;
  Utf8Stream characters_;
  StopMatcher stops_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_TEXT_DECODER_H_
