// What measures and checks a backend, as a program that needs no library of the server: for
// machines with a GPU and little else.
#include "tools/command_line/subcommand.h"
#include "tools/commands/commands.h"

namespace {

constexpr hippodrome::Subcommand kSubcommands[] = {
    {"bench", "measure speed as fractions of this machine's limits", hippodrome::BenchCommand},
    {"compare", "check a device against the CPU, operation by operation",
     hippodrome::CompareCommand},
};

}  // namespace

int main(int argc, char** argv) {
  return hippodrome::RunSubcommand({.name = "hippodrome_bench",
                                    .summary = "Measures and checks a backend.",
                                    .commands = kSubcommands,
                                    .version = ""},
                                   argc, argv);
}
