#include "tools/evaluate/encoders/syntax_pairs.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "tools/evaluate/tsv.h"

namespace hippodrome {
namespace {

// ---- Words -------------------------------------------------------------------------------------

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

std::string Joined(const std::vector<std::string_view>& words) {
  std::string sentence;
  for (const std::string_view word : words) {
    sentence += (sentence.empty() ? "" : " ") + std::string(word);
  }
  return sentence;
}

bool IsPunctuation(char c) { return std::string_view(".,;:!?\"').").find(c) < std::string::npos; }

// How much punctuation both words end with: "is." and "are." differ before it.
size_t CommonPunctuation(std::string_view a, std::string_view b) {
  size_t length = 0;
  while (length + 1 < std::min(a.size(), b.size()) &&
         a[a.size() - 1 - length] == b[b.size() - 1 - length] &&
         IsPunctuation(a[a.size() - 1 - length])) {
    ++length;
  }
  return length;
}

// The pair of two sentences that differ in one word.
std::optional<SyntaxPair> PairOf(std::string_view good, std::string_view bad) {
  std::vector<std::string_view> words = SplitWords(good);
  const std::vector<std::string_view> others = SplitWords(bad);
  const std::optional<size_t> place = OnlyDifference(words, others);
  if (!place) return std::nullopt;
  const std::string_view word = words[*place];
  const std::string_view other = others[*place];
  const size_t punctuation = CommonPunctuation(word, other);
  const std::string mask = "[MASK]" + std::string(word.substr(word.size() - punctuation));
  words[*place] = mask;
  return SyntaxPair{.masked = Joined(words),
                    .good = std::string(word.substr(0, word.size() - punctuation)),
                    .bad = std::string(other.substr(0, other.size() - punctuation))};
}

// "prep_anim" and "prep_inanim" are one family.
std::string Family(std::string_view name) {
  for (const std::string_view suffix : {"_inanim", "_anim"}) {
    if (name.ends_with(suffix)) return std::string(name.substr(0, name.size() - suffix.size()));
  }
  return std::string(name);
}

// ---- Verbs -------------------------------------------------------------------------------------

constexpr std::pair<std::string_view, std::string_view> kIrregular[] = {
    {"is", "are"}, {"has", "have"}, {"does", "do"}, {"focuses", "focus"}};

bool EndsWithAny(std::string_view word, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return word.ends_with(ending); });
}

bool IsVowel(char c) { return std::string_view("aeiou").find(c) < std::string::npos; }

// ---- Tables ------------------------------------------------------------------------------------

// Rows of good and bad sentence, behind family and condition where there are four fields.
absl::StatusOr<SyntaxPairs> ReadPairs(const std::vector<TsvRow>& rows) {
  constexpr size_t kGoodAndBad = 2;
  constexpr size_t kWithCondition = 4;
  SyntaxPairs result;
  const bool plain = !rows.empty() && rows[0].fields.size() == kGoodAndBad;
  result.layout = plain ? SyntaxLayout::kPairs : SyntaxLayout::kMarvinLinzen;
  const size_t expected = plain ? kGoodAndBad : kWithCondition;
  for (const TsvRow& row : rows) {
    if (row.fields.size() < expected) return CheckFields(row, expected);
    auto pair = PairOf(row.fields[expected - 2], row.fields[expected - 1]);
    if (!pair || row.fields.size() > expected) {
      ++result.skipped;
      continue;
    }
    if (!plain) {
      pair->family = Family(row.fields[0]);
      pair->condition = std::string(row.fields[0]) + "/" + std::string(row.fields[1]);
      pair->masked += " .";
    }
    result.pairs.push_back(*std::move(pair));
  }
  return result;
}

struct AttractorColumns {
  size_t sentence = 0;
  size_t intervening = 0;
  size_t different = 0;
  size_t verb_pos = 0;
  size_t verb_index = 0;
};

absl::StatusOr<AttractorColumns> FindAttractorColumns(const TsvRow& header) {
  AttractorColumns columns;
  HIPPODROME_ASSIGN_OR_RETURN(columns.sentence, FindColumn(header, "orig_sentence"));
  HIPPODROME_ASSIGN_OR_RETURN(columns.intervening, FindColumn(header, "n_intervening"));
  HIPPODROME_ASSIGN_OR_RETURN(columns.different, FindColumn(header, "n_diff_intervening"));
  HIPPODROME_ASSIGN_OR_RETURN(columns.verb_pos, FindColumn(header, "verb_pos"));
  HIPPODROME_ASSIGN_OR_RETURN(columns.verb_index, FindColumn(header, "verb_index"));
  return columns;
}

// A row whose verb stands in its sentence.
absl::StatusOr<SyntaxPair> AttractorPair(const TsvRow& row, const AttractorColumns& columns) {
  std::vector<std::string_view> words = SplitWords(row.fields[columns.sentence]);
  const std::string_view text = row.fields[columns.verb_index];
  size_t index = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || stop != text.data() + text.size() || index < 1 ||
      index > words.size()) {
    return InvalidArgument("line " + std::to_string(row.line) + ": verb_index is '" +
                           OneLine(text) + "', expected a word of the sentence, 1 to " +
                           std::to_string(words.size()));
  }
  std::string verb(words[index - 1]);
  for (char& c : verb) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  SyntaxPair pair = {
      .family = std::string(row.fields[columns.different]),
      .good = verb,
      .bad = row.fields[columns.verb_pos] == "VBZ" ? PluralVerb(verb) : SingularVerb(verb)};
  words[index - 1] = "[MASK]";
  pair.masked = Joined(words);
  return pair;
}

absl::StatusOr<SyntaxPairs> ReadAttractors(const std::vector<TsvRow>& rows) {
  HIPPODROME_ASSIGN_OR_RETURN(const AttractorColumns columns, FindAttractorColumns(rows[0]));
  SyntaxPairs result = {.layout = SyntaxLayout::kAttractors};
  for (const TsvRow& row : std::span(rows).subspan(1)) {
    HIPPODROME_RETURN_IF_ERROR(CheckFields(row, rows[0].fields.size()));
    const std::string_view attractors = row.fields[columns.different];
    const std::string_view verb_pos = row.fields[columns.verb_pos];
    const bool counts =
        attractors == "1" || attractors == "2" || attractors == "3" || attractors == "4";
    if (!counts || attractors != row.fields[columns.intervening] ||
        (verb_pos != "VBZ" && verb_pos != "VBP")) {
      ++result.skipped;
      continue;
    }
    HIPPODROME_ASSIGN_OR_RETURN(SyntaxPair pair, AttractorPair(row, columns));
    result.pairs.push_back(std::move(pair));
  }
  return result;
}

}  // namespace

absl::StatusOr<SyntaxPairs> ReadSyntaxPairs(std::string_view table) {
  const std::vector<TsvRow> rows = ParseTsv(table);
  const bool attractors = !rows.empty() && FindColumn(rows[0], "orig_sentence").ok();
  auto result = attractors ? ReadAttractors(rows) : ReadPairs(rows);
  if (result.ok() && result->pairs.empty()) {
    return InvalidArgument("there are no pairs of sentences that differ in one word");
  }
  return result;
}

std::string PluralVerb(std::string_view singular) {
  for (const auto& [one, many] : kIrregular) {
    if (singular == one) return std::string(many);
  }
  if (!singular.ends_with('s')) return std::string(singular);
  constexpr size_t kDies = 4;  // "dies" is of "die", "carries" of "carry"
  if (singular.ends_with("ies") && singular.size() > kDies) {
    return std::string(singular.substr(0, singular.size() - 3)) + "y";
  }
  const bool es = EndsWithAny(singular, {"sses", "shes", "ches", "xes", "zzes", "oes"});
  return std::string(singular.substr(0, singular.size() - (es ? 2 : 1)));
}

std::string SingularVerb(std::string_view plural) {
  for (const auto& [one, many] : kIrregular) {
    if (plural == many) return std::string(one);
  }
  const bool consonant_y =
      plural.size() > 1 && plural.ends_with('y') && !IsVowel(plural[plural.size() - 2]);
  if (consonant_y) return std::string(plural.substr(0, plural.size() - 1)) + "ies";
  const bool es = EndsWithAny(plural, {"s", "sh", "ch", "x", "z", "o"});
  return std::string(plural) + (es ? "es" : "s");
}

}  // namespace hippodrome
