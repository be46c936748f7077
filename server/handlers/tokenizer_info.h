// What clients need to know of a tokenizer.
#ifndef HIPPODROME_SERVER_HANDLERS_TOKENIZER_INFO_H_
#define HIPPODROME_SERVER_HANDLERS_TOKENIZER_INFO_H_

#include <cstdint>
#include <string>

namespace hippodrome {

// "" for a token that there is not.
struct TokenizerInfo {
  std::string eos_token;  // ends a text
  std::string bos_token;  // may stand before a text
  std::string pad_token;
  int32_t eos_token_id = -1;  // -1: none
  int64_t vocab_size = 0;     // of the model: token ids are below it
  int64_t max_tokens = 0;     // of a text with its continuation; 0: no limit but memory
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_TOKENIZER_INFO_H_
