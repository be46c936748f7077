// `hippodrome eval positions`.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/data_file.h"
#include "tools/evaluate/encoders/metric_report.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/lm/documents.h"
#include "tools/evaluate/open_decoder.h"
#include "tools/evaluate/positions/length_report.h"
#include "tools/evaluate/positions/perplexity_by_length.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

const CommandSpec kPositionsSpec = {
    .name = "eval positions",
    .summary = "Evaluates a decoder by position in its text, and by length of context.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description =
        "Reads windows of documents, each from a zero state, and gives perplexity by position, "
        "with the tokens per second of the prefill there and the bytes of the sequence's state. "
        "Then scores the same tokens, the last of each window, with contexts of different lengths, "
        "so that nothing but the length differs.\n"
        "Prints tables on stderr and one JSON object on stdout.",
    .options = {
        ModelOption(),
        DataOption("UTF-8 text, documents apart by lines \"<|endoftext|>\""),
        {"length", "N", "tokens of a window; shorter documents are left out", "65536"},
        {"last-tokens", "N",
         "tokens at the end of each window that are scored with different contexts", "1024"},
        {"documents", "N", "read the first N that are long enough (default: all)"},
        AttentionWindowOption(),
        WeightsOption(),
        H3StateOption(),
        DeviceOption(),
        ThreadsOption(),
        PinOption(),
        NumaNodeOption(),
        {"svg", "FILE", "draw the figures against the length"},
        JsonOption()}};

using TokenDocuments = std::vector<std::vector<int32_t>>;

// The first `most` documents of at least a window.
absl::StatusOr<TokenDocuments> ReadLongDocuments(const std::string& text,
                                                 const BpeTokenizer& tokenizer, int64_t length,
                                                 int64_t most) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto documents, ReadDocuments(text, DocumentForm::kText));
  TokenDocuments found;
  int64_t longest = 0;
  for (const NumberedDocument& document : documents) {
    if (std::ssize(found) == most) break;
    auto ids = tokenizer.Encode(document.document.at("text").get<std::string>());
    longest = std::max<int64_t>(longest, std::ssize(ids));
    if (std::ssize(ids) > length) found.push_back(std::move(ids));
  }
  if (!found.empty()) return found;
  return InvalidArgument("the longest document has " + std::to_string(longest) +
                         " tokens, expected at least a window and its successor, " +
                         std::to_string(length + 1));
}

std::vector<int64_t> TokenBytes(const BpeTokenizer& tokenizer, int64_t vocab) {
  std::vector<int64_t> bytes(static_cast<size_t>(vocab));
  for (int64_t id = 0; id < vocab; ++id) {
    bytes[static_cast<size_t>(id)] = std::ssize(tokenizer.Bytes(static_cast<int32_t>(id)));
  }
  return bytes;
}

absl::StatusOr<LengthOptions> ReadLengthOptions(const CommandLine& line) {
  LengthOptions options;
  HIPPODROME_ASSIGN_OR_RETURN(options.window.length, line.Integer("length", 2, 1 << 30));
  HIPPODROME_ASSIGN_OR_RETURN(options.last_tokens,
                              line.Integer("last-tokens", 1, options.window.length - 1));
  HIPPODROME_ASSIGN_OR_RETURN(options.window.attention_window, line.AttentionWindow());
  HIPPODROME_ASSIGN_OR_RETURN(options.window.h3_state, line.H3State());
  return options;
}

absl::Status WriteLengths(const CommandLine& line, nlohmann::ordered_json json,
                          const PerplexityByLength& found) {
  PrintTable(PositionRows(found));
  PrintTable(ContextRows(found));
  if (const std::string ratios = RatioLine(found); !ratios.empty()) {
    fmt::print(stderr, "{}\n", ratios);
  }
  if (line.Has("svg")) {
    const std::string title =
        fmt::format("{} windows of {} tokens", found.windows, found.by_position.back().last);
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(line.Text("svg"), SvgFile(DrawLengths(found, title))));
  }
  json.update(LengthJson(found));
  return Report(line, json);
}

absl::Status MeasurePositions(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string path, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const LengthOptions options, ReadLengthOptions(line));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t most, line.Integer("documents", 1 << 30, 1, 1 << 30));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path));
  HIPPODROME_ASSIGN_OR_RETURN(const OpenedDecoder opened, OpenTextDecoder(line, directory));
  const LoadedDecoder& loaded = opened.decoder;
  const auto documents = ReadLongDocuments(text, *loaded.tokenizer, options.window.length, most);
  if (!documents.ok()) return InFile(path, documents.status());
  std::vector<std::span<const int32_t>> windows;
  for (const auto& ids : *documents) {
    for (const auto window : CutWindows(ids, options.window.length)) windows.push_back(window);
  }
  Progress progress("eval positions");
  HIPPODROME_ASSIGN_OR_RETURN(
      const PerplexityByLength found,
      EvaluateByLength(*opened.backend, *loaded.model, windows,
                       TokenBytes(*loaded.tokenizer, loaded.model->config().vocab_size), options,
                       [&](int64_t done, int64_t total) { progress.Update(done, total); }));
  return WriteLengths(line,
                      {{"task", "positions"},
                       {"length", options.window.length},
                       {"last_tokens", options.last_tokens},
                       {"attention_window", options.window.attention_window},
                       {"weights", WeightsName(loaded.weights)},
                       {"h3_state", WeightsName(options.window.h3_state)},
                       {"documents", std::ssize(*documents)}},
                      found);
}

}  // namespace

int EvalPositions(int argc, char** argv) {
  return RunCommand(argc, argv, kPositionsSpec, MeasurePositions);
}

}  // namespace hippodrome
