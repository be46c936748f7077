// The command line of `hippodrome serve`.
#ifndef HIPPODROME_TOOLS_COMMANDS_SERVE_OPTIONS_H_
#define HIPPODROME_TOOLS_COMMANDS_SERVE_OPTIONS_H_

#include "absl/status/statusor.h"
#include "server/load_model.h"
#include "server/options.h"
#include "tools/command_line/command_line.h"

namespace hippodrome {

struct ServeOptions {
  LoadOptions load;
  ServerOptions server;
};

extern const CommandSpec kServeSpec;

// Errors: usage errors naming the option, its value and what was expected; kUnavailable for a
// device that this build does not have.
absl::StatusOr<ServeOptions> ReadServeOptions(const CommandLine& line);
// Those of them that say how models are loaded. Of CpuOptions only the threads are read: whoever
// loads places them (CommandLine::PlaceThreads()).
inline constexpr const char* kLoadOptions[] = {
    "device",    "weights",       "threads",         "pin",
    "numa-node", "max-sequences", "kv-bytes",        "attention-window",
    "h3-state",  "prefix-slots",  "prefix-interval", "speculate",
    "draft",     "pad-to",        "max-batch-tokens"};
absl::StatusOr<LoadOptions> ReadLoadOptions(const CommandLine& line);
// A model's directory with its name, which is the directory's where the text has none; `called`:
// how errors call the option.
absl::StatusOr<ModelSource> ParseModelSource(const std::string& called, const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMANDS_SERVE_OPTIONS_H_
