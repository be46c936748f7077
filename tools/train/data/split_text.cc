#include "tools/train/data/split_text.h"

#include <algorithm>

namespace hippodrome {
namespace {

constexpr std::string_view kMarker = "<|endoftext|>";
constexpr std::string_view kSpaces = " \t\n\v\f\r";

bool IsSpace(char c) { return kSpaces.find(c) != kSpaces.npos; }
bool IsVisibleAscii(char c) { return c > ' ' && c < 0x7f; }

std::string_view Trim(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

// Bytes of the closing mark that `text` begins with: ASCII, or a right quotation mark.
size_t ClosingMark(std::string_view text) {
  for (const std::string_view mark : {"\"", "'", ")", "]", "}", "\u2019", "\u201d"}) {
    if (text.starts_with(mark)) return mark.size();
  }
  return 0;
}

// Where the sentence ends whose last stop is at `stop`, or npos if it goes on.
size_t EndOfSentence(std::string_view text, size_t stop) {
  size_t end = stop + 1;
  while (const size_t mark = ClosingMark(text.substr(end))) end += mark;
  return end == text.size() || IsSpace(text[end]) ? end : text.npos;
}

// Whether nothing but blanks stand between the line feed at `feed` and the next one.
bool EmptyLineFollows(std::string_view text, size_t feed) {
  const size_t next = text.find_first_not_of(" \t\r", feed + 1);
  return next != text.npos && text[next] == '\n';
}

size_t FirstSentence(std::string_view text) {
  for (size_t i = text.find_first_of(".!?\n"); i != text.npos;
       i = text.find_first_of(".!?\n", i + 1)) {
    if (text[i] == '\n') {
      if (EmptyLineFollows(text, i)) return i;
      continue;
    }
    const size_t end = EndOfSentence(text, i);
    if (end != text.npos) return end;
  }
  return text.size();
}

}  // namespace

std::vector<std::string_view> SplitDocuments(std::string_view text) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    const size_t end = text.find(kMarker);
    const std::string_view document = text.substr(0, end);
    if (!Trim(document).empty()) documents.push_back(document);
    text.remove_prefix(end == text.npos ? text.size() : end + kMarker.size());
  }
  return documents;
}

std::vector<std::string_view> SplitSentences(std::string_view document) {
  std::vector<std::string_view> sentences;
  for (std::string_view rest = Trim(document); !rest.empty();) {
    const size_t end = FirstSentence(rest);
    sentences.push_back(Trim(rest.substr(0, end)));
    rest = Trim(rest.substr(end));
  }
  return sentences;
}

std::vector<std::string_view> SplitBetweenWords(std::string_view text, size_t size) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t cut = text.find('\n', std::max<size_t>(size, 1));
    while (cut < text.size() && (cut + 1 == text.size() || !IsVisibleAscii(text[cut - 1]) ||
                                 !IsVisibleAscii(text[cut + 1]))) {
      cut = text.find('\n', cut + 1);
    }
    const size_t end = cut == text.npos ? text.size() : cut + 1;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

}  // namespace hippodrome
