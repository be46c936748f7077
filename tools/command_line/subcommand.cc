#include "tools/command_line/subcommand.h"

#include <cstdio>
#include <exception>
#include <string>

namespace hippodrome {
namespace {

void PrintSubcommands(std::FILE* out, const char* program,
                      std::span<const Subcommand> subcommands) {
  std::fprintf(out, "usage: %s COMMAND [options]   (COMMAND --help says more)\n", program);
  for (const Subcommand& command : subcommands) {
    std::fprintf(out, "  %-9s %s\n", command.name, command.summary);
  }
}

}  // namespace

int RunSubcommand(const char* program, std::span<const Subcommand> subcommands, int argc,
                  char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    PrintSubcommands(stdout, program, subcommands);
    return 0;
  }
  for (const Subcommand& command : subcommands) {
    if (name != command.name) continue;
    try {
      return command.run(argc - 1, argv + 1);
    } catch (const std::exception& error) {  // out of memory, or a device that failed
      std::fprintf(stderr, "%s %s: %s\n", program, command.name, error.what());
      return 1;
    }
  }
  if (!name.empty()) std::fprintf(stderr, "%s: unknown command '%s'\n", program, name.c_str());
  PrintSubcommands(stderr, program, subcommands);
  return 2;
}

}  // namespace hippodrome
