#include "tools/evaluate/eval_perplexity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "engine/passes/forward.h"
#include "kernels/cpu/rows/sample.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/open_decoder.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

const CommandSpec kPerplexitySpec = {
    .name = "eval perplexity",
    .summary = "Evaluates a decoder on a text.",
    .usage = {"--model DIR --data FILE [OPTION]..."},
    .description = "Scores the text in windows, the state reset at each.",
    .options = {ModelOption(),
                {"data", "FILE", "UTF-8 text"},
                {"window", "N", "tokens of a window", "2048"},
                WeightsOption(),
                H3StateOption(),
                DeviceOption(),
                ThreadsOption(),
                PinOption(),
                NumaNodeOption(),
                JsonOption()}};

// As if every token stood for the text's mean number of bytes.
double BitsPerByte(double nll, double bytes_per_token) {
  return nll / std::log(2.0) / bytes_per_token;
}

// {} where there is one window.
nlohmann::json Intervals(const Perplexity& p, double bytes_per_token) {
  nlohmann::json intervals = nlohmann::json::object();
  const auto add = [&](const char* name, const std::function<double(double nll)>& figure) {
    if (const auto interval = BootstrapBlocks({&p.windows, 1}, figure)) {
      intervals[name] = ToJson(*interval);
    }
  };
  add("perplexity", [](double nll) { return std::exp(nll); });
  add("bits_per_byte", [&](double nll) { return BitsPerByte(nll, bytes_per_token); });
  return intervals;
}

absl::Status MeasureText(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string data, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t window, line.Integer("window", 1, 1 << 30));
  ForwardMode mode;
  HIPPODROME_ASSIGN_OR_RETURN(mode.h3_state, line.H3State());
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(data));
  HIPPODROME_ASSIGN_OR_RETURN(const OpenedDecoder opened, OpenTextDecoder(line, directory));
  const LoadedDecoder& loaded = opened.decoder;
  const std::vector<int32_t> ids = loaded.tokenizer->Encode(text);
  Progress progress("eval perplexity");
  HIPPODROME_ASSIGN_OR_RETURN(
      const Perplexity p,
      EvaluatePerplexity(*opened.backend, *loaded.model, ids, window, mode,
                         [&](int64_t done, int64_t total) { progress.Update(done, total); }));
  const double bytes_per_token = static_cast<double>(text.size()) / static_cast<double>(ids.size());
  return Report(line, {{"task", "perplexity"},
                       {"window", window},
                       {"weights", WeightsName(loaded.weights)},
                       {"h3_state", WeightsName(mode.h3_state)},
                       {"tokens", p.tokens},
                       {"nll", p.nll},
                       {"perplexity", p.perplexity},
                       {"bits_per_byte", BitsPerByte(p.nll, bytes_per_token)},
                       {"intervals", Intervals(p, bytes_per_token)}});
}

}  // namespace

double NegativeLogLikelihood(std::span<const float> logits, int64_t vocab, int32_t target) {
  return cpu::LogSumExp(logits.first(vocab)) - logits[target];
}

absl::StatusOr<Perplexity> EvaluatePerplexity(
    Backend& backend, const HybridH3& model, std::span<const int32_t> ids, int64_t window,
    const ForwardMode& mode, const std::function<void(int64_t done, int64_t total)>& progress) {
  const int64_t windows = (static_cast<int64_t>(ids.size()) - 1) / window;
  if (ids.empty() || windows < 1) {
    return InvalidArgument("the text has " + std::to_string(ids.size()) +
                           " tokens, expected at least a window and its successor, " +
                           std::to_string(window + 1));
  }
  const H3Config& config = model.config();
  Perplexity result{.tokens = windows * window};
  double total = 0;
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t begin = w * window;
    double of_window = 0;
    const auto score = [&](int64_t first, std::span<const float> logits) {
      const int64_t rows = static_cast<int64_t>(logits.size()) / config.padded_vocab_size;
      for (int64_t r = 0; r < rows; ++r) {
        of_window += NegativeLogLikelihood(
            logits.subspan(r * config.padded_vocab_size, config.padded_vocab_size),
            config.vocab_size, ids[begin + first + r + 1]);
      }
    };
    HIPPODROME_RETURN_IF_ERROR(Forward(backend, model, ids.subspan(begin, window), mode, score));
    total += of_window;
    result.windows.push_back({.sum = of_window, .values = window});
    if (progress) progress(w + 1, windows);
  }
  result.nll = total / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.nll);
  return result;
}

int EvalPerplexity(int argc, char** argv) {
  return RunCommand(argc, argv, kPerplexitySpec, MeasureText);
}

}  // namespace hippodrome
