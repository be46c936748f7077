#include "tools/evaluate/encoders/eval_syntax.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoder_command.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/report.h"
#include "tools/evaluate/tsv.h"

namespace hippodrome {
namespace {

// ---- The table ---------------------------------------------------------------------------------

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

// ---- The evaluation ----------------------------------------------------------------------------

const CommandSpec kSyntaxSpec = EncoderCommand({
    .name = "eval syntax",
    .summary = "Evaluates a masked LM on minimal pairs of sentences.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description =
        "Of pairs that differ in one word, that word is masked, and the model is right when its "
        "logit "
        "for the good word is above that for the bad one. Both must be in the vocabulary.",
    .options = {DataOption("a table of family, condition, good and bad sentence, as of Marvin and "
                           "Linzen (2018)")},
});

// A pair's words as tokens.
struct PairWords {
  int32_t good = 0;
  int32_t bad = 0;
};

std::optional<int32_t> OnlyToken(const WordPieceTokenizer& tokenizer, const std::string& word) {
  const std::vector<WordPiece> pieces = tokenizer.Tokenize(word);
  if (pieces.size() != 1 || tokenizer.IsSpecial(pieces[0].id)) return std::nullopt;
  return pieces[0].id;
}

// [CLS] sentence [SEP], asking for the [MASK]; nothing when that was truncated.
std::optional<EncoderRequest> MaskRequest(const EncoderSession& session,
                                          const std::string& sentence) {
  EncodedText input = session.Encode(sentence, "", false);
  const auto mask = std::find(input.ids.begin(), input.ids.end(), session.tokenizer().mask());
  if (mask == input.ids.end()) return std::nullopt;
  const auto row = static_cast<int32_t>(mask - input.ids.begin());
  return EncoderRequest{
      .ids = std::move(input.ids), .types = std::move(input.types), .rows = {row}};
}

struct PairWork {
  std::vector<PairWords> words;            // of each pair
  std::vector<EncoderRequest> sentences;   // masked, each once
  std::vector<std::vector<size_t>> pairs;  // of each sentence
  int64_t skipped = 0;                     // pairs
};

// Many pairs share the sentence and differ in their two words alone.
PairWork PlanPairs(const EncoderSession& session, const std::vector<SyntaxPair>& pairs) {
  PairWork work{.words = std::vector<PairWords>(pairs.size())};
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto good = OnlyToken(session.tokenizer(), pairs[i].good);
    const auto bad = OnlyToken(session.tokenizer(), pairs[i].bad);
    auto request = good && bad ? MaskRequest(session, pairs[i].masked) : std::nullopt;
    if (!request) {
      ++work.skipped;
      continue;
    }
    work.words[i] = {*good, *bad};
    const auto [place, is_new] = places.emplace(pairs[i].masked, work.sentences.size());
    if (is_new) {
      work.sentences.push_back(*std::move(request));
      work.pairs.emplace_back();
    }
    work.pairs[place->second].push_back(i);
  }
  return work;
}

struct PairTally {
  int64_t pairs = 0;
  int64_t right = 0;

  void Add(bool is_right) {
    ++pairs;
    right += is_right;
  }
  nlohmann::json Json() const {
    const double accuracy =
        pairs == 0 ? 0 : static_cast<double>(right) / static_cast<double>(pairs);
    return {{"pairs", pairs}, {"accuracy", accuracy}};
  }
};

struct Tallies {
  PairTally all;
  std::map<std::string, PairTally> families;
  std::map<std::string, PairTally> conditions;

  void Add(const SyntaxPair& pair, bool is_right) {
    all.Add(is_right);
    families[pair.family].Add(is_right);
    conditions[pair.condition].Add(is_right);
  }
};

absl::StatusOr<Tallies> Score(EncoderSession& session, const std::vector<SyntaxPair>& pairs,
                              const PairWork& work) {
  Tallies tallies;
  const auto score = [&](size_t sentence, const EncoderOutput& output) {
    for (const size_t pair : work.pairs[sentence]) {
      const auto [good, bad] = work.words[pair];
      tallies.Add(pairs[pair], output.values[good] > output.values[bad]);
    }
  };
  HIPPODROME_RETURN_IF_ERROR(session.Run("eval syntax", work.sentences, score));
  return tallies;
}

nlohmann::json Json(const std::map<std::string, PairTally>& tallies) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, tally] : tallies) json[name] = tally.Json();
  return json;
}

absl::Status EvaluateSyntax(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string table, ReadDataFile(path));
  const auto read = ReadSyntaxPairs(table);
  if (!read.ok()) return InFile(path, read.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, {EncoderHead::kMaskedLm}));
  const PairWork work = PlanPairs(*session, read->pairs);
  HIPPODROME_ASSIGN_OR_RETURN(const Tallies tallies, Score(*session, read->pairs, work));
  nlohmann::json json = session->Description();
  json.update({{"task", "syntax"},
               {"skipped_rows", read->skipped},
               {"skipped_pairs", work.skipped},
               {"families", Json(tallies.families)},
               {"conditions", Json(tallies.conditions)}});
  json.update(tallies.all.Json());
  return Report(line, json);
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

int EvalSyntax(int argc, char** argv) {
  return RunCommand(argc, argv, kSyntaxSpec, EvaluateSyntax);
}

}  // namespace hippodrome
