// Cuts words into the pieces of a WordPiece vocabulary.
#ifndef HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_CUTTER_H_
#define HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_CUTTER_H_

#include <cstdint>
#include <vector>

#include "engine/tokenizer/bert_words.h"
#include "engine/tokenizer/wordpiece.h"
#include "engine/tokenizer/wordpiece_vocabulary.h"

namespace hippodrome {

// Appends the pieces of a word, the longest possible from left to right, or one [UNK] for all of
// it: when a part has no piece or it has more than 100 characters. `number` becomes their `word`.
void AppendPieces(const WordPieceVocabulary& vocabulary, BertWords::Word word, int64_t number,
                  std::vector<WordPiece>& pieces);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_WORDPIECE_CUTTER_H_
