// Programs that are made of subcommands.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_SUBCOMMAND_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_SUBCOMMAND_H_

#include <span>

namespace hippodrome {

struct Subcommand {
  const char* name;
  const char* summary;                // one line of the program's usage
  int (*run)(int argc, char** argv);  // argv[0] is its name; returns the exit code
};

// Runs the subcommand that the first argument names and returns its exit code; 1 with one line on
// stderr when it throws. --help prints what there is, anything else too, as a usage error: 2.
int RunSubcommand(const char* program, std::span<const Subcommand> subcommands, int argc,
                  char** argv);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_SUBCOMMAND_H_
