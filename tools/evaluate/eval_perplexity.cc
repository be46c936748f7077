#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/perplexity.h"
#include "tools/evaluate/report.h"

namespace hippodrome {
namespace {

const CommandSpec kPerplexitySpec = {
    .usage =
        "usage: hippodrome eval perplexity --model DIR --data FILE --window N\n"
        "  [--weights f32|bf16] [--device auto|cpu|cuda] [--threads N] [--json FILE]\n"
        "Scores the UTF-8 text in FILE in windows of N tokens, state reset at each.",
    .values = {"device", "model", "data", "window", "weights", "threads", "json"},
    .positional = 1};

absl::Status EvaluateText(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string data, line.Required("data"));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t window, line.Integer("window", 2048, 1, 1 << 30));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const int threads, line.Threads());
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(data));
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(const auto backend, OpenBackend(device, threads));
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedDecoder loaded,
                              LoadDecoderDirectory(*backend, directory, weights));
  if (loaded.tokenizer == nullptr) {
    return FailedPrecondition(directory + " has no tokenizer files, which text needs");
  }
  const std::vector<int32_t> ids = loaded.tokenizer->Encode(text);
  Progress progress("eval perplexity");
  HIPPODROME_ASSIGN_OR_RETURN(
      const Perplexity p,
      EvaluatePerplexity(*backend, *loaded.model, ids, window,
                         [&](int64_t done, int64_t total) { progress.Update(done, total); }));
  // As if every token stood for the text's mean number of bytes.
  const double bytes_per_token = static_cast<double>(text.size()) / static_cast<double>(ids.size());
  return Report(line, {{"task", "perplexity"},
                       {"window", window},
                       {"weights", loaded.weights == DType::kBF16 ? "bf16" : "f32"},
                       {"tokens", p.tokens},
                       {"nll", p.nll},
                       {"perplexity", p.perplexity},
                       {"bits_per_byte", p.nll / std::log(2.0) / bytes_per_token}});
}

}  // namespace

int EvalPerplexity(int argc, char** argv) {
  return RunCommand(argc, argv, kPerplexitySpec, EvaluateText);
}

}  // namespace hippodrome
