#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/durable_files.h"
#include "engine/base/field_error.h"
#include "engine/base/one_line.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "engine/sampling.h"
#include "engine/state/state_file.h"
#include "engine/tokenizer/utf8_stream.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/text_file.h"
#include "tools/command_line/token_ids.h"
#include "tools/commands/commands.h"

namespace hippodrome {
namespace {

const CommandSpec kGenerateSpec = {
    .name = "generate",
    .summary = "Continues a prompt on the terminal.",
    .usage = {"--model DIR --prompt TEXT [OPTION]...",
              "--model DIR --prompt-ids LIST|@FILE [OPTION]...",
              "--model DIR --state FILE [OPTION]..."},
    .description = "Text is printed as it comes; of a model without tokenizer files, the JSON.",
    .options = {
        ModelOption(),
        {"prompt", "TEXT", "the text to continue"},
        {"prompt-ids", "LIST|@FILE", "its token ids, as 1,2,3, or a file that has them"},
        {"max-tokens", "N", "tokens to make, unless the text ends earlier", "128"},
        {"temperature", "X", "divides the logits; 0: the likeliest token is taken", "0"},
        {"top-k", "N", "only the N likeliest tokens; 0: all", "0"},
        {"top-p", "X", "only the likeliest tokens that have this probability together", "1"},
        {"min-p", "X", "only tokens at least X times as likely as the likeliest", "0"},
        {"typical-p", "X", "only the most typical tokens that have this probability together", "1"},
        {"repetition-penalty", "X", "divides the logits of tokens that were there before", "1"},
        {"presence-penalty", "X", "taken from the logits of tokens that were made before", "0"},
        {"frequency-penalty", "X", "the same for each time that they were made", "0"},
        {"seed", "N", "seed of the random numbers (default: 0, or that of --state)"},
        {"state", "FILE", "go on from a saved state; the prompt, if any, is what is new"},
        {"save-state", "FILE", "save the state after the last token"},
        {"ignore-eos", "", "go on where the model ends its text"},
        {"json", "", "print one object instead: token_ids, text, finish_reason"},
        WeightsOption(),
        DeviceOption(),
        ThreadsOption(),
    }};

// The error of a field as that of its option.
absl::Status OptionError(const absl::Status& status) {
  std::string option = Field(status);
  const std::string rest = Message(status).substr(option.size());
  std::replace(option.begin(), option.end(), '_', '-');
  return Usage("--" + option + rest);
}

absl::StatusOr<SamplingParameters> ReadSampling(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const double temperature, line.Number("temperature"));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t top_k, line.Integer("top-k", INT64_MIN, INT64_MAX));
  HIPPODROME_ASSIGN_OR_RETURN(const double top_p, line.Number("top-p"));
  HIPPODROME_ASSIGN_OR_RETURN(const double min_p, line.Number("min-p"));
  HIPPODROME_ASSIGN_OR_RETURN(const double typical_p, line.Number("typical-p"));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t seed, line.Integer("seed", 0, 0, INT64_MAX));
  const auto sampling = ToSamplingParameters({.temperature = static_cast<float>(temperature),
                                              .top_k = top_k,
                                              .top_p = static_cast<float>(top_p),
                                              .min_p = static_cast<float>(min_p),
                                              .typical_p = static_cast<float>(typical_p),
                                              .seed = static_cast<uint64_t>(seed)});
  if (!sampling.ok()) return OptionError(sampling.status());
  return *sampling;
}

absl::StatusOr<LogitChanges> ReadPenalties(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const double repetition, line.Number("repetition-penalty"));
  HIPPODROME_ASSIGN_OR_RETURN(const double presence, line.Number("presence-penalty"));
  HIPPODROME_ASSIGN_OR_RETURN(const double frequency, line.Number("frequency-penalty"));
  LogitChanges changes;
  changes.repetition_penalty = static_cast<float>(repetition);
  changes.presence_penalty = static_cast<float>(presence);
  changes.frequency_penalty = static_cast<float>(frequency);
  const absl::Status status = CheckLogitChanges(changes, 0);  // no bias: no vocabulary
  if (!status.ok()) return OptionError(status);
  return changes;
}

absl::StatusOr<std::vector<int32_t>> ReadPrompt(const CommandLine& line,
                                                const LoadedDecoder& loaded) {
  const bool ids = line.Has("prompt-ids");
  if (!ids && !line.Has("prompt") && line.Has("state")) return std::vector<int32_t>();
  if (line.Has("prompt") == ids) return Usage("give either --prompt or --prompt-ids");
  if (ids) {
    std::string text = line.Text("prompt-ids");
    if (text.starts_with('@')) {
      HIPPODROME_ASSIGN_OR_RETURN(text, ReadTextFile(text.substr(1)));
    }
    return ParseTokenIds(text);
  }
  if (loaded.tokenizer == nullptr) {
    return FailedPrecondition("the model has no tokenizer files; use --prompt-ids");
  }
  return loaded.tokenizer->Encode(line.Text("prompt"));
}

struct Output {
  std::vector<int32_t> token_ids;
  std::string text;
  FinishReason finish = FinishReason::kNone;
};

// One sequence needs one slot and the pages of `tokens`, no more.
absl::StatusOr<std::unique_ptr<Generator>> MakeGenerator(Backend& backend, const HybridH3& model,
                                                         int64_t tokens) {
  GeneratorOptions options{.max_sequences = 1};
  options.key_value_bytes = (tokens + 64) * model.config().n_layer * 8 * model.config().d_model;
  return Generator::Create(backend, model, options);
}

// Where a state comes from and goes to; empty: nowhere.
struct StateFiles {
  std::string from, to;
};

// Empty without a file to start from.
absl::StatusOr<std::string> ReadState(const StateFiles& files) {
  if (files.from.empty()) return std::string();
  return ReadSmallFile(files.from, SIZE_MAX);
}

// Lets `request` go on from the state in the file, where there is one.
absl::Status StartFrom(const std::string& bytes, const std::string& arithmetic,
                       const Generator& generator, bool keep_seed, GenerationRequest& request) {
  if (bytes.empty()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(SavedState state, ReadStateFile(bytes, generator.state_layout()));
  if (state.lossy || state.arithmetic != arithmetic) {
    std::fprintf(stderr, "hippodrome: the state is %s\"%s\", this is \"%s\": it is not exact\n",
                 state.lossy ? "lossy, of " : "of ", OneLine(state.arithmetic).c_str(),
                 arithmetic.c_str());
  }
  if (!keep_seed) request.sampling.seed = state.seed;
  request.start = std::make_shared<const SavedState>(std::move(state));
  return absl::OkStatus();
}

absl::Status SaveTo(const std::string& path, const Generator& generator, SequenceId sequence) {
  if (path.empty()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const SavedState state, generator.Save(sequence));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string bytes,
                              WriteStateFile(state, generator.state_layout()));
  return WriteFileDurably(path, bytes);
}

// Runs a sequence that is alone to its end; `stream` prints text as it comes.
absl::StatusOr<Output> Run(Generator& generator, const LoadedDecoder& loaded, bool stream) {
  Output output;
  Utf8Stream characters;
  const auto emit = [&](const std::string& text) {
    output.text += text;
    if (stream) {
      std::fputs(text.c_str(), stdout);
      std::fflush(stdout);
    }
  };
  std::vector<TokenEvent> events;
  while (output.finish == FinishReason::kNone) {
    events.clear();
    if (generator.prefilling()) {
      generator.Prefill(Generator::Clock::time_point::max(), events);
    } else {
      generator.Step(events);
    }
    for (const TokenEvent& event : events) {
      if (event.finish == FinishReason::kFailed) {
        return Internal("the model computed a value that is not a number");
      }
      output.token_ids.push_back(event.token);
      output.finish = event.finish;
      if (loaded.tokenizer != nullptr && event.finish != FinishReason::kEndOfText) {
        emit(characters.Append(loaded.tokenizer->Bytes(event.token)));
      }
    }
  }
  emit(characters.Finish());
  return output;
}

void PrintJson(const Output& output) {
  const nlohmann::json json = {
      {"token_ids", output.token_ids},
      {"text", output.text},
      {"finish_reason", output.finish == FinishReason::kEndOfText ? "stop" : "length"}};
  std::printf("%s\n", json.dump().c_str());
}

absl::Status Generate(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const int threads, line.Threads());
  GenerationRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(request.max_tokens, line.Integer("max-tokens", 1, int64_t{1} << 40));
  HIPPODROME_ASSIGN_OR_RETURN(request.sampling, ReadSampling(line));
  HIPPODROME_ASSIGN_OR_RETURN(request.changes, ReadPenalties(line));
  request.ignore_eos = line.Has("ignore-eos");
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(const auto backend, OpenBackend(device, {.threads = threads}));
  HIPPODROME_ASSIGN_OR_RETURN(const LoadedDecoder loaded,
                              LoadDecoderDirectory(*backend, directory, weights));
  HIPPODROME_ASSIGN_OR_RETURN(request.prompt, ReadPrompt(line, loaded));
  const bool json = line.Has("json");
  const bool ids_only = loaded.tokenizer == nullptr;
  const StateFiles files{line.Text("state"), line.Text("save-state")};
  HIPPODROME_ASSIGN_OR_RETURN(const std::string state, ReadState(files));
  // What is before: no more tokens than the file has bytes.
  const int64_t before = std::ssize(request.prompt) + std::ssize(state);
  HIPPODROME_ASSIGN_OR_RETURN(auto generator,
                              MakeGenerator(*backend, *loaded.model, before + request.max_tokens));
  HIPPODROME_RETURN_IF_ERROR(StartFrom(state, Arithmetic(*backend, loaded.weights), *generator,
                                       line.Has("seed"), request));
  HIPPODROME_RETURN_IF_ERROR(generator->Validate(request));
  HIPPODROME_ASSIGN_OR_RETURN(const SequenceId sequence, generator->Admit(std::move(request)));
  HIPPODROME_ASSIGN_OR_RETURN(const Output output, Run(*generator, loaded, !json && !ids_only));
  HIPPODROME_RETURN_IF_ERROR(SaveTo(files.to, *generator, sequence));
  if (json || ids_only) {
    PrintJson(output);
  } else {
    std::printf("\n");
  }
  return absl::OkStatus();
}

}  // namespace

int GenerateCommand(int argc, char** argv) {
  return RunCommand(argc, argv, kGenerateSpec, Generate);
}

}  // namespace hippodrome
