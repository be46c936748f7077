// Makes the vocabulary of a WordPiece tokenizer.
#ifndef HIPPODROME_TOOLS_TRAIN_TOKENIZER_TRAIN_WORDPIECE_H_
#define HIPPODROME_TOOLS_TRAIN_TOKENIZER_TRAIN_WORDPIECE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tools/train/tokenizer/train_bpe.h"
#include "tools/train/tokenizer/word_counts.h"

namespace hippodrome {

// The text of a vocab.txt of exactly `vocab_size` tokens: [PAD], [UNK], [CLS], [SEP] and [MASK],
// the characters, then pieces in the order in which they are found.
//
// Pieces are found by merging the most frequent pair, as for byte-pair encodings, of a word's first
// character and its others, which are written "##c"; the original trainer of BERT was never
// published, and this is how its successors are trained. Characters are the 1,000 most frequent
// ones, each as it stands in words, first or further on; words with others teach nothing.
//
// Errors: kInvalidArgument when the specials and characters alone are more than vocab_size, or the
// words have no more pairs to merge, or it is above 2^24.
absl::StatusOr<std::string> TrainWordPiece(const WordCounts& words, int64_t vocab_size,
                                           const VocabularyProgress& progress);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_TOKENIZER_TRAIN_WORDPIECE_H_
