// Texts to token ids.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_ENCODE_TEXT_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_ENCODE_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/wordpiece.h"
#include "kernels/cpu/base/thread_pool.h"
#include "tools/train/data/tokenized_text.h"

namespace hippodrome {

// Called with bytes done and in all, by one thread at a time.
using EncodeProgress = std::function<void(int64_t done, int64_t total)>;

// Appends the documents of `text` (see SplitDocuments) as tokens, the same for any number of
// threads. Errors: kFailedPrecondition when the tokenizer has no <|endoftext|>.
absl::Status AppendText(const BpeTokenizer& tokenizer, std::string_view text, ThreadPool& pool,
                        const EncodeProgress& progress, TokenizedText& tokens);
void AppendText(const WordPieceTokenizer& tokenizer, std::string_view text, ThreadPool& pool,
                const EncodeProgress& progress, TokenizedText& tokens);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_ENCODE_TEXT_H_
