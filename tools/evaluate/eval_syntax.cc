#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoder_command.h"
#include "tools/evaluate/encoder_session.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/report.h"
#include "tools/evaluate/syntax_pairs.h"

namespace hippodrome {
namespace {

const CommandSpec kSyntaxSpec = EncoderCommand(
    "usage: hippodrome eval syntax --model DIR --data FILE\n",
    "FILE is a table of family, condition, good and bad sentence, as of Marvin and Linzen (2018).\n"
    "Of pairs that differ in one word, that word is masked, and the model is right when its logit\n"
    "for the good word is above that for the bad one. Both must be in the vocabulary.");

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
                              EncoderSession::Open(line, EncoderHead::kMaskedLm));
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

int EvalSyntax(int argc, char** argv) {
  return RunCommand(argc, argv, kSyntaxSpec, EvaluateSyntax);
}

}  // namespace hippodrome
