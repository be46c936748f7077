#include "tools/evaluate/syntax_pairs.h"

#include <optional>

#include "engine/base/status.h"
#include "tools/evaluate/tsv.h"

namespace hippodrome {
namespace {

constexpr size_t kFields = 4;

std::vector<std::string_view> SplitWords(std::string_view sentence) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = sentence.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    sentence.remove_prefix(begin);
    words.push_back(sentence.substr(0, sentence.find(' ')));
    sentence.remove_prefix(words.back().size());
  }
}

// The place of the only word in which the two differ; nothing if there is none or another.
std::optional<size_t> OnlyDifference(const std::vector<std::string_view>& a,
                                     const std::vector<std::string_view>& b) {
  if (a.size() != b.size()) return std::nullopt;
  std::optional<size_t> place;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (place) return std::nullopt;
    place = i;
  }
  return place;
}

// "prep_anim" and "prep_inanim" are one family.
std::string Family(std::string_view name) {
  for (const std::string_view suffix : {"_inanim", "_anim"}) {
    if (name.ends_with(suffix)) return std::string(name.substr(0, name.size() - suffix.size()));
  }
  return std::string(name);
}

std::string Masked(const std::vector<std::string_view>& words, size_t place) {
  std::string sentence;
  for (size_t i = 0; i < words.size(); ++i) {
    sentence += (i == place ? "[MASK]" : std::string(words[i])) + " ";
  }
  return sentence + ".";
}

}  // namespace

absl::StatusOr<SyntaxPairs> ReadSyntaxPairs(std::string_view table) {
  SyntaxPairs result;
  for (const TsvRow& row : ParseTsv(table)) {
    if (row.fields.size() < kFields) return CheckFields(row, kFields);
    const std::vector<std::string_view> good = SplitWords(row.fields[2]);
    const std::vector<std::string_view> bad = SplitWords(row.fields[3]);
    const std::optional<size_t> place = OnlyDifference(good, bad);
    if (!place || row.fields.size() > kFields) {
      ++result.skipped;
      continue;
    }
    result.pairs.push_back(
        {.family = Family(row.fields[0]),
         .condition = std::string(row.fields[0]) + "/" + std::string(row.fields[1]),
         .masked = Masked(good, *place),
         .good = std::string(good[*place]),
         .bad = std::string(bad[*place])});
  }
  if (result.pairs.empty()) {
    return InvalidArgument("there are no pairs of sentences that differ in one word");
  }
  return result;
}

}  // namespace hippodrome
