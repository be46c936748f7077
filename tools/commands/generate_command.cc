#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/field_error.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "engine/sampling.h"
#include "engine/state/state_file.h"
#include "server/states/state_signature.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/stop_signal.h"
#include "tools/command_line/text_file.h"
#include "tools/command_line/token_ids.h"
#include "tools/commands/commands.h"
#include "tools/commands/interactive_session.h"
#include "tools/commands/lone_sequence.h"

namespace hippodrome {
namespace {

const CommandSpec kGenerateSpec = {
    .name = "generate",
    .summary = "Continues a prompt on the terminal.",
    .usage = {"--model DIR --prompt TEXT [OPTION]...",
              "--model DIR --prompt-ids LIST|@FILE [OPTION]...",
              "--model DIR --state FILE [OPTION]...", "--model DIR --interactive [OPTION]..."},
    .description =
        "Text is printed as it comes; of a model without tokenizer files, the JSON.\n"
        "With --interactive each line of standard input is a turn of a conversation, of which "
        "nothing is taken in twice; /help tells the commands, Ctrl-C stops an answer.\n"
        "With --save-state, SIGINT or SIGTERM ends an answer early, with status 0: the state that "
        "it has got to is saved, and a line on standard error says how to go on.",
    .options = {
        ModelOption(),
        {"prompt", "TEXT", "the text to continue"},
        {"prompt-ids", "LIST|@FILE", "its token ids, as 1,2,3, or a file that has them"},
        {"interactive", "", "answer each line of standard input, going on from the one before"},
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
        {"state-dtype", "f32|bf16", "its numbers; bf16 halves the file, and rounds", "f32"},
        {"state-key", "FILE", "sign it with this secret, and take only states that it has signed"},
        AttentionWindowOption(),
        H3StateOption(),
        SpeculateOption(),
        DraftOption(),
        {"ignore-eos", "", "go on where the model ends its text"},
        {"json", "", "print one object instead: token_ids, text, finish_reason"},
        WeightsOption(),
        DeviceOption(),
        ThreadsOption(),
        PinOption(),
        NumaNodeOption(),
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

// What the model runs on, with the one that drafts for it, if any.
struct Models {
  Backend& backend;
  LoadedDecoder loaded;
  std::unique_ptr<HybridH3> draft;
};

absl::StatusOr<LoneOptions> ReadLoneOptions(const CommandLine& line, const Models& models) {
  LoneOptions options{.speculate = line.Has("speculate"), .draft = models.draft.get()};
  HIPPODROME_ASSIGN_OR_RETURN(options.attention_window, line.AttentionWindow());
  HIPPODROME_ASSIGN_OR_RETURN(options.h3_state, line.H3State());
  return options;
}

// Where a state comes from and goes to; empty: nowhere.
struct StateFiles {
  std::string from, to;
  StateFileOptions how;  // it is written; with its key it is read
};

absl::StatusOr<StateFiles> ReadStateFiles(const CommandLine& line) {
  StateFiles files{.from = line.Text("state"), .to = line.Text("save-state")};
  HIPPODROME_ASSIGN_OR_RETURN(const std::string dtype, line.Choice("state-dtype"));
  files.how.lossy = dtype == "bf16";
  if (line.Has("state-key")) {
    HIPPODROME_ASSIGN_OR_RETURN(std::string key, ReadStateKey(line.Text("state-key")));
    files.how.sign = HmacSha256(std::move(key));
  }
  return files;
}

// Empty without a file to start from.
absl::StatusOr<std::string> ReadState(const StateFiles& files) {
  if (files.from.empty()) return std::string();
  return ReadSmallFile(files.from, SIZE_MAX);
}

// Lets `request` go on from the state in the file, where there is one.
absl::Status StartFrom(const std::string& bytes, const StateSigner& sign,
                       const Generator& generator, bool keep_seed, GenerationRequest& request) {
  if (bytes.empty()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(SavedState state,
                              ReadStateFile(bytes, generator.state_layout(), {.sign = sign}));
  const std::string inexact = WhyInexact(state, generator.arithmetic());
  if (!inexact.empty()) std::fprintf(stderr, "hippodrome: %s\n", inexact.c_str());
  if (!keep_seed) request.sampling.seed = state.seed;
  request.start = std::make_shared<const SavedState>(std::move(state));
  return absl::OkStatus();
}

absl::Status SaveTo(const StateFiles& files, const Generator& generator, SequenceId sequence,
                    const LoneOutput& output, int64_t tokens_before) {
  if (files.to.empty()) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(SavedState state, generator.Save(sequence));
  state.pending_text = output.pending_text;
  HIPPODROME_RETURN_IF_ERROR(SaveStateTo(files.to, state, generator.state_layout(), files.how));
  if (output.finish != FinishReason::kNone) return absl::OkStatus();
  if (state.last_token) {
    std::fprintf(stderr, "hippodrome: stopped after %zu new tokens; to go on: --state %s\n",
                 output.token_ids.size(), files.to.c_str());
  } else {
    std::fprintf(stderr,
                 "hippodrome: stopped within the prompt; to go on: --state %s and the last %lld "
                 "tokens of the prompt, as --prompt-ids\n",
                 files.to.c_str(), static_cast<long long>(tokens_before - state.position));
  }
  return absl::OkStatus();
}

const char* FinishName(FinishReason finish) {
  switch (finish) {
    case FinishReason::kEndOfText:
      return "stop";
    case FinishReason::kNone:
      return "interrupted";
    default:
      return "length";
  }
}

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void PrintJson(const LoneOutput& output) {
  const nlohmann::json json = {{"token_ids", output.token_ids},
                               {"text", output.text},
                               {"finish_reason", FinishName(output.finish)}};
  std::printf("%s\n", json.dump().c_str());
}

// All that a request has but for what it begins with.
absl::StatusOr<GenerationRequest> ReadRequest(const CommandLine& line) {
  GenerationRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(request.max_tokens, line.Integer("max-tokens", 1, int64_t{1} << 40));
  HIPPODROME_ASSIGN_OR_RETURN(request.sampling, ReadSampling(line));
  HIPPODROME_ASSIGN_OR_RETURN(request.changes, ReadPenalties(line));
  request.ignore_eos = line.Has("ignore-eos");
  return request;
}

// ---- A conversation ----------------------------------------------------------------------------

volatile std::sig_atomic_t interrupted = 0;

void NoteInterrupt(int) { interrupted = 1; }

// Reading a line goes on.
void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = NoteInterrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

absl::Status Talk(const CommandLine& line, GenerationRequest turn, const Models& models,
                  const StateFiles& files) {
  if (models.loaded.tokenizer == nullptr) {
    return FailedPrecondition("the model has no tokenizer files: there is no text to read");
  }
  InteractiveOptions options{.turn = std::move(turn),
                             .keep_seed = line.Has("seed"),
                             .sign = isatty(STDIN_FILENO) == 1,
                             .files = files.how};
  HIPPODROME_ASSIGN_OR_RETURN(options.generator, ReadLoneOptions(line, models));
  options.take_stop = [] { return std::exchange(interrupted, 0) != 0; };
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              InteractiveSession::Open(models.backend, models.loaded,
                                                       std::move(options), std::cout, std::cerr));
  if (!files.from.empty()) HIPPODROME_RETURN_IF_ERROR(session->Load(files.from));
  CatchInterrupts();
  session->Run(std::cin);
  return files.to.empty() ? absl::OkStatus() : session->Save(files.to);
}

// ---- One answer --------------------------------------------------------------------------------

absl::Status OneAnswer(const CommandLine& line, GenerationRequest request, const Models& models,
                       const StateFiles& files) {
  const LoadedDecoder& loaded = models.loaded;
  HIPPODROME_ASSIGN_OR_RETURN(request.prompt, ReadPrompt(line, loaded));
  const bool json = line.Has("json") || loaded.tokenizer == nullptr;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string state, ReadState(files));
  // What is before: no more tokens than the file has bytes.
  const int64_t before = std::ssize(request.prompt) + std::ssize(state);
  HIPPODROME_ASSIGN_OR_RETURN(const LoneOptions how, ReadLoneOptions(line, models));
  HIPPODROME_ASSIGN_OR_RETURN(auto generator, MakeLoneGenerator(models.backend, *loaded.model,
                                                                before + request.max_tokens, how));
  HIPPODROME_RETURN_IF_ERROR(
      StartFrom(state, files.how.sign, *generator, line.Has("seed"), request));
  HIPPODROME_RETURN_IF_ERROR(generator->Validate(request));
  LoneRun run{.tokenizer = loaded.tokenizer.get()};
  if (!json) run.print = Print;
  run.pending_text = PendingText(request);
  const int64_t tokens_before = TokensBefore(request);
  HIPPODROME_ASSIGN_OR_RETURN(const SequenceId sequence, generator->Admit(std::move(request)));
  std::optional<StopSignal> signal;
  if (!files.to.empty()) {
    signal.emplace();
    run.saved = sequence;
    run.stopped = [&signal] { return signal->Received(); };
  }
  HIPPODROME_ASSIGN_OR_RETURN(const LoneOutput output, RunLoneSequence(*generator, run));
  HIPPODROME_RETURN_IF_ERROR(SaveTo(files, *generator, sequence, output, tokens_before));
  if (json) {
    PrintJson(output);
  } else {
    std::printf("\n");
  }
  return absl::OkStatus();
}

absl::Status Generate(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  const bool interactive = line.Has("interactive");
  for (const char* other : {"prompt", "prompt-ids", "json"}) {
    if (interactive && line.Has(other)) {
      return Usage(std::string("--interactive reads lines and prints text: leave --") + other +
                   " out");
    }
  }
  HIPPODROME_RETURN_IF_ERROR(line.CheckDrafts());
  HIPPODROME_ASSIGN_OR_RETURN(GenerationRequest request, ReadRequest(line));
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(const auto backend, OpenBackend(device, cpu));
  Models models{.backend = *backend};
  HIPPODROME_ASSIGN_OR_RETURN(models.loaded, LoadDecoderDirectory(*backend, directory, weights));
  if (line.Has("draft")) {
    HIPPODROME_ASSIGN_OR_RETURN(
        models.draft, LoadDraftModel(*backend, line.Text("draft"), models.loaded, weights));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const StateFiles files, ReadStateFiles(line));
  return (interactive ? Talk : OneAnswer)(line, std::move(request), models, files);
}

}  // namespace

int GenerateCommand(int argc, char** argv) {
  return RunCommand(argc, argv, kGenerateSpec, Generate);
}

}  // namespace hippodrome
