#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "engine/sampling.h"
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
              "--model DIR --prompt-ids LIST|@FILE [OPTION]..."},
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
        {"seed", "N", "seed of the random numbers", "0"},
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
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t seed, line.Integer("seed", 0, INT64_MAX));
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
  if (line.Has("prompt") == line.Has("prompt-ids")) {
    return Usage("give either --prompt or --prompt-ids");
  }
  if (line.Has("prompt-ids")) {
    std::string ids = line.Text("prompt-ids");
    if (ids.starts_with('@')) {
      HIPPODROME_ASSIGN_OR_RETURN(ids, ReadTextFile(ids.substr(1)));
    }
    return ParseTokenIds(ids);
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

// Runs the request alone; `stream` prints text as it comes.
absl::StatusOr<Output> Run(Backend& backend, const LoadedDecoder& loaded, GenerationRequest request,
                           bool stream) {
  // One sequence needs one slot and the pages of that request, no more.
  const int64_t rows = static_cast<int64_t>(request.prompt.size()) + request.max_tokens + 64;
  GeneratorOptions options{.max_sequences = 1};
  options.key_value_bytes =
      rows * loaded.model->config().n_layer * 8 * loaded.model->config().d_model;
  HIPPODROME_ASSIGN_OR_RETURN(auto generator, Generator::Create(backend, *loaded.model, options));
  HIPPODROME_RETURN_IF_ERROR(generator->Validate(request));
  HIPPODROME_RETURN_IF_ERROR(generator->Admit(std::move(request)).status());
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
    if (generator->prefilling()) {
      generator->Prefill(Generator::Clock::time_point::max(), events);
    } else {
      generator->Step(events);
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
  HIPPODROME_ASSIGN_OR_RETURN(const Output output,
                              Run(*backend, loaded, std::move(request), !json && !ids_only));
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
