#include "engine/tokenizer/bert_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/tokenizer/bert_characters.h"
#include "engine/tokenizer/utf8.h"

namespace hippodrome {
namespace {

// What becomes of an ASCII character; 0: it is dropped.
constexpr std::array<char, 128> kAscii = [] {
  std::array<char, 128> result{};
  for (char c = 0x20; c < 0x7f; ++c) result[c] = c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  for (const char c : {'\t', '\n', '\r'}) result[c] = ' ';
  return result;
}();

// Of a decomposed character.
void AppendLower(int32_t code_point, int64_t place, BertWords& words) {
  if (!IsBertMark(code_point)) words.Append(utf8proc_tolower(code_point), place);
}

}  // namespace

int64_t BertNormalizer::Normalize(std::string_view text, int64_t first, BertWords& words) {
  int64_t place = first;
  starter_place_ = first;
  for (; !text.empty(); ++place) {
    if (static_cast<uint8_t>(text[0]) < 0x80) {
      AppendAscii(text[0], place, words);
      text.remove_prefix(1);
      continue;
    }
    const Utf8Char character = FirstUtf8Char(text);
    if (character.kind == Utf8Char::Kind::kValid) Append(character.code_point, place, words);
    text.remove_prefix(character.length);
  }
  AppendMarks(words);
  words.EndWord();
  return place;
}

void BertNormalizer::AppendAscii(char c, int64_t place, BertWords& words) {
  const char normal = kAscii[c];
  if (normal == 0) return;
  if (!marks_.empty()) AppendMarks(words);
  words.Append(normal, place);
  starter_place_ = place;
}

void BertNormalizer::Append(int32_t code_point, int64_t place, BertWords& words) {
  if (IsBertControl(code_point)) return;
  if (IsBertSpace(code_point)) return AppendAscii(' ', place, words);
  if (!IsBertIdeograph(code_point)) return AppendDecomposed(code_point, place, words);
  AppendAscii(' ', place, words);
  AppendDecomposed(code_point, place, words);
  AppendAscii(' ', place, words);
}

void BertNormalizer::AppendDecomposed(int32_t code_point, int64_t place, BertWords& words) {
  const Decomposition decomposition = Decompose(code_point);
  bool starts = true;
  for (const int32_t part : decomposition.code_points()) {
    const int combining_class = BertCombiningClass(part);
    if (combining_class == 0) {
      AppendMarks(words);
      AppendLower(part, place, words);
      starter_place_ = place;
    } else {
      marks_.push_back({part, combining_class, marks_.size(), starts});
      if (starts) places_.push_back(place);
    }
    starts = false;
  }
}

void BertNormalizer::AppendMarks(BertWords& words) {
  std::sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
    return std::pair(a.combining_class, a.order) < std::pair(b.combining_class, b.order);
  });
  // A mark that starts takes the next place; others stay at the one before.
  int64_t place = starter_place_;
  auto next = places_.begin();
  for (const Mark& mark : marks_) {
    if (mark.starts) place = *next++;
    AppendLower(mark.code_point, place, words);
  }
  marks_.clear();
  places_.clear();
}

}  // namespace hippodrome
