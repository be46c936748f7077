#include "engine/tokenizer/bert_words.h"

#include <utf8proc.h>

#include "engine/tokenizer/bert_characters.h"

namespace hippodrome {
namespace {

void AppendUtf8(int32_t code_point, std::string& text) {
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
    return;
  }
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

}  // namespace

BertWords::Word BertWords::operator[](int64_t i) const {
  const size_t begin = i == 0 ? 0 : ends_[i - 1];
  const size_t size = ends_[i] - begin;
  return {std::string_view(text_).substr(begin, size), std::span(places_).subspan(begin, size)};
}

void BertWords::Append(int32_t code_point, int64_t place) {
  if (code_point == ' ') return EndWord();
  const bool alone = IsBertPunctuation(code_point);
  if (alone) EndWord();
  AppendUtf8(code_point, text_);
  places_.resize(text_.size(), place);
  if (alone) EndWord();
}

void BertWords::EndWord() {
  const size_t begin = ends_.empty() ? 0 : ends_.back();
  if (text_.size() > begin) ends_.push_back(text_.size());
}

void BertWords::Clear() {
  text_.clear();
  places_.clear();
  ends_.clear();
}

}  // namespace hippodrome
