#include "tools/commands/interactive_session.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/state/state_file.h"

namespace hippodrome {
namespace {

const std::string kHelp =
    "A line is a turn: its text is taken in as it stands, a space at its beginning too, and the\n"
    "model answers. An empty line: the model goes on. Ctrl-C stops an answer.\n"
    "  /undo       takes back the last turn, /load or /reset; the last " +
    std::to_string(kMostUndone) +
    " are kept\n"
    "  /save FILE  saves the state behind the last turn\n"
    "  /load FILE  goes on from a saved state\n"
    "  /reset      begins anew\n"
    "  /help       this\n"
    "  /quit       ends, as the end of input does\n";

}  // namespace

absl::StatusOr<std::unique_ptr<InteractiveSession>> InteractiveSession::Open(
    Backend& backend, const LoadedDecoder& model, InteractiveOptions options, std::ostream& answers,
    std::ostream& notes) {
  std::unique_ptr<InteractiveSession> session(
      new InteractiveSession(backend, model, std::move(options), answers, notes));
  HIPPODROME_ASSIGN_OR_RETURN(session->generator_, MakeLoneGenerator(backend, *model.model, 0,
                                                                     session->options_.generator));
  return session;
}

InteractiveSession::InteractiveSession(Backend& backend, const LoadedDecoder& model,
                                       InteractiveOptions options, std::ostream& answers,
                                       std::ostream& notes)
    : backend_(backend),
      model_(model),
      options_(std::move(options)),
      answers_(answers),
      notes_(notes) {}

absl::Status InteractiveSession::Load(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string bytes, ReadSmallFile(path, SIZE_MAX));
  HIPPODROME_ASSIGN_OR_RETURN(SavedState state, ReadStateFile(bytes, generator_->state_layout(),
                                                              {.sign = options_.files.sign}));
  const std::string inexact = WhyInexact(state, generator_->arithmetic());
  if (!inexact.empty()) notes_ << "hippodrome: " << inexact << "\n";
  GoTo(std::make_shared<const SavedState>(std::move(state)));
  return absl::OkStatus();
}

absl::Status InteractiveSession::Save(const std::string& path) const {
  if (state_ == nullptr) return FailedPrecondition("nothing was said yet: there is no state");
  return SaveStateTo(path, *state_, generator_->state_layout(), options_.files);
}

void InteractiveSession::Run(std::istream& lines) {
  before_.clear();
  std::string line;
  while (!ended_) {
    if (options_.sign) notes_ << "> " << std::flush;
    if (!std::getline(lines, line)) break;
    const absl::Status status = line.starts_with('/') ? Obey(line) : Answer(line);
    if (!status.ok()) notes_ << "hippodrome: " << Message(status) << "\n" << std::flush;
  }
}

// The pages of a generator are made with it: where a conversation outgrows them it gets another
// one, with twice as many, so that few are made however long it becomes.
absl::Status InteractiveSession::MakeRoom(int64_t tokens) {
  if (generator_->Cost(tokens, options_.turn.max_tokens).bytes <= generator_->capacity().bytes) {
    return absl::OkStatus();
  }
  HIPPODROME_ASSIGN_OR_RETURN(
      generator_, MakeLoneGenerator(backend_, *model_.model, 2 * tokens + options_.turn.max_tokens,
                                    options_.generator));
  return absl::OkStatus();
}

absl::Status InteractiveSession::Answer(const std::string& text) {
  GenerationRequest request = options_.turn;
  request.prompt = model_.tokenizer->Encode(text);
  request.start = state_;
  if (state_ != nullptr && !options_.keep_seed) request.sampling.seed = state_->seed;
  HIPPODROME_RETURN_IF_ERROR(MakeRoom(TokensBefore(request)));
  HIPPODROME_RETURN_IF_ERROR(generator_->Validate(request));
  const std::string pending_text = PendingText(request);
  HIPPODROME_ASSIGN_OR_RETURN(const SequenceId sequence, generator_->Admit(std::move(request)));
  const absl::Cleanup release = [&] { generator_->Release(sequence); };
  (void)options_.take_stop();  // what was wanted before is over
  const auto print = [&](const std::string& piece) { answers_ << piece << std::flush; };
  const absl::StatusOr<LoneOutput> output =
      RunLoneSequence(*generator_, {.tokenizer = model_.tokenizer.get(),
                                    .print = print,
                                    .stopped = options_.take_stop,
                                    .pending_text = pending_text});
  answers_ << "\n" << std::flush;
  HIPPODROME_RETURN_IF_ERROR(output.status());
  if (output->token_ids.empty()) {
    return absl::CancelledError("stopped before the first token: the line is taken back");
  }
  HIPPODROME_ASSIGN_OR_RETURN(SavedState state, generator_->Save(sequence));
  GoTo(std::make_shared<const SavedState>(std::move(state)));
  return absl::OkStatus();
}

absl::Status InteractiveSession::Obey(const std::string& line) {
  const size_t space = line.find(' ');
  const std::string command = line.substr(0, space);
  const std::string file = space == std::string::npos ? "" : line.substr(space + 1);
  if (command == "/save" || command == "/load") {
    if (file.empty()) return InvalidArgument(command + ": expected a FILE behind it");
    return command == "/save" ? Save(file) : Load(file);
  }
  if (command == "/undo") return Undo();
  if (command == "/reset") {
    GoTo(nullptr);
  } else if (command == "/help") {
    notes_ << kHelp << std::flush;
  } else if (command == "/quit") {
    ended_ = true;
  } else {
    return InvalidArgument(command +
                           ": there is no such command; /help tells those that there are");
  }
  return absl::OkStatus();
}

absl::Status InteractiveSession::Undo() {
  if (before_.empty()) return FailedPrecondition("there is nothing to take back");
  state_ = std::move(before_.back());
  before_.pop_back();
  return absl::OkStatus();
}

void InteractiveSession::GoTo(State state) {
  before_.push_back(std::exchange(state_, std::move(state)));
  if (before_.size() > kMostUndone) before_.pop_front();
}

}  // namespace hippodrome
