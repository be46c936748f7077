#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/encoder_command.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/encoders/metric_report.h"
#include "tools/evaluate/encoders/syntax_pairs.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

const CommandSpec kSyntaxSpec = EncoderCommand({
    .name = "eval syntax",
    .summary = "Evaluates a masked LM on minimal pairs of sentences.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description =
        "Of pairs that differ in one word, that word is masked, and the model is right when its "
        "logit for the good word is above that for the bad one. Both must be in the vocabulary. "
        "Prints a table on stderr and one JSON object on stdout.\n"
        "--data is a table of good and bad sentences; of family, condition, good and bad "
        "sentence, as of Marvin and Linzen (2018), of which the BiGS paper's table is printed; or "
        "of sentences with verbs, as of Linzen et al. (2016), with a header that has "
        "orig_sentence, n_intervening, n_diff_intervening, verb_pos and verb_index: accuracy is "
        "by attractors then, and the bad word is the verb in the other number.",
    .options = {DataOption("a tab-separated table of pairs")},
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

// Whether the model was right, of each pair of a group: 1 or 0.
using Group = std::vector<double>;

nlohmann::json GroupReport(const Group& group) {
  const Metric accuracy = {"accuracy", MeanOfExamples(group)};
  nlohmann::json report = MetricReport(std::ssize(group), std::span(&accuracy, 1));
  report["pairs"] = group.size();
  return report;
}

struct Groups {
  Group all;
  std::map<std::string, Group> families;
  std::map<std::string, Group> conditions;
};

absl::StatusOr<Groups> Score(EncoderSession& session, const std::vector<SyntaxPair>& pairs,
                             const PairWork& work) {
  std::vector<std::optional<bool>> right(pairs.size());
  const auto score = [&](size_t sentence, const EncoderOutput& output) {
    for (const size_t pair : work.pairs[sentence]) {
      const auto [good, bad] = work.words[pair];
      right[pair] = output.values[good] > output.values[bad];
    }
  };
  HIPPODROME_RETURN_IF_ERROR(session.Run("eval syntax", work.sentences, score));
  Groups groups;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!right[i]) continue;
    const double value = *right[i] ? 1 : 0;
    groups.all.push_back(value);
    groups.families[pairs[i].family].push_back(value);
    groups.conditions[pairs[i].condition].push_back(value);
  }
  return groups;
}

nlohmann::json GroupReports(const std::map<std::string, Group>& groups) {
  nlohmann::json reports = nlohmann::json::object();
  for (const auto& [name, group] : groups) reports[name] = GroupReport(group);
  return reports;
}

// ---- Tables ------------------------------------------------------------------------------------

using Rows = std::vector<std::vector<std::string>>;

std::vector<std::string> Row(const std::string& name, const nlohmann::json& report) {
  return {name, std::to_string(report.at("pairs").get<int64_t>()), MetricText(report, "accuracy")};
}

struct PublishedRow {
  const char* name;
  const char* family;  // empty: a heading
};

// Table 5 of the BiGS paper.
constexpr PublishedRow kTable5[] = {
    {"Subject-verb agreement", ""},
    {"  Simple", "simple_agrmt"},
    {"  In a sentential complement", "sent_comp"},
    {"  Short VP coordination", "vp_coord"},
    {"  Long VP coordination", "long_vp_coord"},
    {"  Across a prepositional phrase", "prep"},
    {"  Across a subject relative clause", "subj_rel"},
    {"  Across an object relative clause", "obj_rel_across"},
    {"  Across an object relative (no that)", "obj_rel_no_comp_across"},
    {"  In an object relative clause", "obj_rel_within"},
    {"  In an object relative (no that)", "obj_rel_no_comp_within"},
    {"Reflexive anaphora", ""},
    {"  Simple", "simple_reflexives"},
    {"  In a sentential complement", "reflexive_sent_comp"},
    {"  Across a relative clause", "reflexives_across"},
};

Rows Table5(const nlohmann::json& families) {
  Rows rows;
  for (const auto& [name, family] : kTable5) {
    const bool known = families.contains(family);
    rows.push_back(known ? Row(name, families.at(family)) : std::vector<std::string>{name, "", ""});
  }
  return rows;
}

Rows TableOf(SyntaxLayout layout, const nlohmann::json& report) {
  Rows rows = {{"", "pairs", "accuracy (95 %)"}};
  if (layout == SyntaxLayout::kMarvinLinzen) {
    for (auto& row : Table5(report.at("families"))) rows.push_back(std::move(row));
  }
  if (layout == SyntaxLayout::kAttractors) {
    for (const auto& [attractors, group] : report.at("attractors").items()) {
      rows.push_back(Row(attractors + (attractors == "1" ? " attractor" : " attractors"), group));
    }
  }
  rows.push_back(Row("All pairs", report));
  return rows;
}

absl::Status EvaluateSyntax(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string table, ReadDataFile(path));
  const auto read = ReadSyntaxPairs(table);
  if (!read.ok()) return InFile(path, read.status());
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              EncoderSession::Open(line, {EncoderHead::kMaskedLm}));
  const PairWork work = PlanPairs(*session, read->pairs);
  HIPPODROME_ASSIGN_OR_RETURN(const Groups groups, Score(*session, read->pairs, work));
  nlohmann::json report = session->Description();
  report.update(
      {{"task", "syntax"}, {"skipped_rows", read->skipped}, {"skipped_pairs", work.skipped}});
  if (read->layout == SyntaxLayout::kMarvinLinzen) {
    report["families"] = GroupReports(groups.families);
    report["conditions"] = GroupReports(groups.conditions);
  }
  if (read->layout == SyntaxLayout::kAttractors) {
    report["attractors"] = GroupReports(groups.families);
  }
  report.update(GroupReport(groups.all));
  PrintTable(TableOf(read->layout, report));
  return Report(line, report);
}

}  // namespace

int EvalSyntax(int argc, char** argv) {
  return RunCommand(argc, argv, kSyntaxSpec, EvaluateSyntax);
}

}  // namespace hippodrome
