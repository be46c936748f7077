// Makes the vocabulary of a byte-level byte-pair encoding.
#ifndef HIPPODROME_TOOLS_TRAIN_TOKENIZER_TRAIN_BPE_H_
#define HIPPODROME_TOOLS_TRAIN_TOKENIZER_TRAIN_BPE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/train/tokenizer/word_counts.h"

namespace hippodrome {

// Called with tokens found and in all.
using VocabularyProgress = std::function<void(int64_t done, int64_t total)>;

// The texts of the files that BpeTokenizer reads.
struct BpeFiles {
  std::string vocab_json;
  std::string merges;
};

// A vocabulary of exactly `vocab_size` tokens, in the order of GPT-2's: the 256 bytes in the order
// of their symbols, merged tokens in the order of their merges, <|endoftext|> last. Each merge is
// of the pair that is most frequent in the words (see PairMerges::MostFrequent()), and there at
// least twice. The result is a function of the counts alone.
//
// Errors: kInvalidArgument when vocab_size is below 257 or above 2^24, or when the words have no
// more pairs to merge.
absl::StatusOr<BpeFiles> TrainBpe(const WordCounts& words, int64_t vocab_size,
                                  const VocabularyProgress& progress);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_TOKENIZER_TRAIN_BPE_H_
