// The words of a normalized text, with places in the original.
#ifndef HIPPODROME_ENGINE_TOKENIZER_BERT_WORDS_H_
#define HIPPODROME_ENGINE_TOKENIZER_BERT_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hippodrome {

// Words between spaces; each punctuation character is one.
class BertWords {
 public:
  struct Word {
    std::string_view text;            // UTF-8, not empty
    std::span<const int64_t> places;  // for each byte, the code point of the original it came from
  };

  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  // Of what was appended up to the last EndWord(). Valid until the next change.
  Word operator[](int64_t i) const;

  // Appends a normalized character to the last word; a space or punctuation ends that word.
  void Append(int32_t code_point, int64_t place);
  // What follows is of another word.
  void EndWord();
  void Clear();

 private:
  std::string text_;
  std::vector<int64_t> places_;  // of the bytes of text_
  std::vector<size_t> ends_;     // of the words in text_, one behind the other
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TOKENIZER_BERT_WORDS_H_
