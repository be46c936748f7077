// A conversation on the terminal: each line goes on from the state behind the one before.
#ifndef HIPPODROME_TOOLS_COMMANDS_INTERACTIVE_SESSION_H_
#define HIPPODROME_TOOLS_COMMANDS_INTERACTIVE_SESSION_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/state/saved_state.h"
#include "engine/state/state_file.h"
#include "kernels/backend.h"
#include "tools/commands/lone_sequence.h"

namespace hippodrome {

// States that /undo can go back to; the oldest ones are forgotten.
inline constexpr size_t kMostUndone = 16;

struct InteractiveOptions {
  GenerationRequest turn;  // what each turn is asked with; prompt and start are the session's
  bool keep_seed = false;  // the seed of `turn` goes before that of a state
  bool sign = false;       // a sign says that a line can be typed
  // How states are written; where it signs them, those that are read need its signature.
  StateFileOptions files = {};
  LoneOptions generator = {};
  // Whether somebody wants the answer stopped; asked once, it is forgotten.
  std::function<bool()> take_stop = [] { return false; };
};

// A line is a turn: its text as it stands is taken in after all that was said, and answered. An
// empty one lets the model go on. A line that begins with / is a command; /help tells them. Nothing
// is taken in twice: a turn goes on from the state behind the last one, and the states behind
// earlier turns are kept for /undo.
class InteractiveSession {
 public:
  // Answers go to `answers`, each ended by a line's end, all else to `notes`. All must outlive the
  // session; the model has a tokenizer. Errors: those of MakeLoneGenerator().
  static absl::StatusOr<std::unique_ptr<InteractiveSession>> Open(Backend& backend,
                                                                  const LoadedDecoder& model,
                                                                  InteractiveOptions options,
                                                                  std::ostream& answers,
                                                                  std::ostream& notes);

  // As /load and /save do. A session without a turn has nothing to save.
  absl::Status Load(const std::string& path);
  absl::Status Save(const std::string& path) const;

  // Until /quit or the end of `lines`. What goes wrong in a turn is said, and the turn is as if it
  // had not been. What was before is not taken back.
  void Run(std::istream& lines);

 private:
  using State = std::shared_ptr<const SavedState>;  // null: nothing was said yet

  InteractiveSession(Backend& backend, const LoadedDecoder& model, InteractiveOptions options,
                     std::ostream& answers, std::ostream& notes);
  absl::Status MakeRoom(int64_t tokens);
  absl::Status Answer(const std::string& text);
  absl::Status Obey(const std::string& line);
  absl::Status Undo();
  void GoTo(State state);

  Backend& backend_;
  const LoadedDecoder& model_;
  const InteractiveOptions options_;
  std::ostream& answers_;
  std::ostream& notes_;
  std::unique_ptr<Generator> generator_;
  State state_;
  std::deque<State> before_;  // what /undo goes back to, the latest at the end
  bool ended_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMANDS_INTERACTIVE_SESSION_H_
