#ifndef HIPPODROME_TESTS_TESTING_BYTE_TOKENIZER_H_
#define HIPPODROME_TESTS_TESTING_BYTE_TOKENIZER_H_

#include <memory>

#include "engine/tokenizer/bpe.h"

namespace hippodrome {

// Token b is the byte b; token 256 is the end of text.
std::unique_ptr<BpeTokenizer> NewByteTokenizer();

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_BYTE_TOKENIZER_H_
