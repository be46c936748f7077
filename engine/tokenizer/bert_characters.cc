#include "engine/tokenizer/bert_characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace hippodrome {
namespace {

struct Range {
  int32_t first = 0;
  int32_t last = 0;
};

// Code points that are plain in Unicode 8.0 and something else in Unicode 15.0: 0x1885, 0x1886 and
// 0xa9bd became Mn; all others were assigned later. A range goes on over what is plain in both.
constexpr Range kPlain[] = {
    {0x61d, 0x61d},     {0x7fd, 0x7fd},     {0x890, 0x8e2},     {0x9fd, 0x9fe},
    {0xa76, 0xa76},     {0xafa, 0xaff},     {0xb55, 0xb55},     {0xc04, 0xc3c},
    {0xc77, 0xc77},     {0xc84, 0xc84},     {0xd00, 0xd00},     {0xd3b, 0xd3c},
    {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},     {0x1715, 0x1715},
    {0x180f, 0x180f},   {0x1885, 0x1886},   {0x1abf, 0x1ace},   {0x1b7d, 0x1b7e},
    {0x1df6, 0x1dfb},   {0x2e43, 0x2e5d},   {0xa82c, 0xa82c},   {0xa8c5, 0xa8c5},
    {0xa8ff, 0xa8ff},   {0xa9bd, 0xa9bd},   {0x10d24, 0x10f89}, {0x11070, 0x11074},
    {0x110c2, 0x110cd}, {0x111cf, 0x111cf}, {0x1123e, 0x11241}, {0x1133b, 0x1133b},
    {0x11438, 0x1145e}, {0x11660, 0x1166c}, {0x116b9, 0x116b9}, {0x1182f, 0x11fff},
    {0x12ff1, 0x13455}, {0x16e97, 0x16f4f}, {0x16fe2, 0x16ff1}, {0x1cf00, 0x1cf46},
    {0x1e000, 0x1e4ef}, {0x1e944, 0x1e95f},
};

// Those of them that NFD sorts nevertheless, being of Unicode 9.0. A range goes on over what has
// combining class 0.
constexpr Range kSorted[] = {{0x8d4, 0x8e1},     {0x1dfb, 0x1dfb},   {0x11442, 0x11446},
                             {0x11c3f, 0x11c3f}, {0x1e000, 0x1e02a}, {0x1e944, 0x1e94a}};

bool IsIn(std::span<const Range> ranges, int32_t c) {
  const auto range = std::lower_bound(ranges.begin(), ranges.end(), c,
                                      [](Range r, int32_t value) { return r.last < value; });
  return range != ranges.end() && range->first <= c;
}

bool IsPlain(int32_t c) { return IsIn(kPlain, c); }

// The other characters whose category changed after Unicode 8.0.
constexpr int32_t kOldMark = 0x1734;
constexpr int32_t kOldPunctuation[] = {0x166d, 0x111c9};

bool IsAsciiAlphanumeric(int32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

bool IsBertControl(int32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0xfffd) return true;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CO:
      return true;
    case UTF8PROC_CATEGORY_CF:
      return !IsPlain(c);
    default:
      return false;
  }
}

bool IsBertSpace(int32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool IsBertIdeograph(int32_t c) {
  constexpr Range kIdeographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                   {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                                   {0x2f800, 0x2fa1f}};
  return IsIn(kIdeographs, c);
}

bool IsBertMark(int32_t c) {
  if (c == kOldMark) return true;
  return utf8proc_category(c) == UTF8PROC_CATEGORY_MN && c != kOldPunctuation[1] && !IsPlain(c);
}

bool IsBertPunctuation(int32_t c) {
  if (c < 128) return c > ' ' && c < 127 && !IsAsciiAlphanumeric(c);
  if (c == kOldPunctuation[0] || c == kOldPunctuation[1]) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  const bool is_punctuation =
      category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;  // adjacent in the enum
  return is_punctuation && !IsPlain(c);
}

int BertCombiningClass(int32_t c) {
  const int combining_class = utf8proc_get_property(c)->combining_class;
  return combining_class == 0 || (IsPlain(c) && !IsIn(kSorted, c)) ? 0 : combining_class;
}

Decomposition Decompose(int32_t c) {
  Decomposition result;
  result.buffer[0] = c;
  result.size = 1;
  if (IsPlain(c)) return result;
  const auto size =
      utf8proc_decompose_char(c, result.buffer.data(), std::ssize(result.buffer),
                              static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE), nullptr);
  if (size > 0 && size <= std::ssize(result.buffer)) result.size = static_cast<size_t>(size);
  return result;
}

}  // namespace hippodrome
