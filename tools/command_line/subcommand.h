// Programs, and commands, that are made of commands.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_SUBCOMMAND_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_SUBCOMMAND_H_

#include <span>
#include <string>

namespace hippodrome {

struct Subcommand {
  const char* name;                   // or several that run the same: "rte|wnli"
  const char* summary;                // one line of the help
  int (*run)(int argc, char** argv);  // argv[0] is its name; returns the exit code
};

struct CommandGroup {
  std::string name;     // as it is called: "hippodrome eval"
  std::string summary;  // what it does, a sentence
  std::span<const Subcommand> commands;
  std::string version;  // what --version prints; empty: there is no such option
};

// Runs the command that the first argument names and returns its exit code; 1 with one line on
// stderr when it throws. --help prints what there is (help.h); anything else does so too, on
// stderr, as a usage error: 2.
int RunSubcommand(const CommandGroup& group, int argc, char** argv);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_SUBCOMMAND_H_
