// What measures and checks a backend, as a program that needs no library of the server: for
// machines with a GPU and little else.
#include "tools/commands.h"
#include "tools/subcommand.h"

namespace {

constexpr hippodrome::Subcommand kSubcommands[] = {
    {"bench", "measure speed as fractions of this machine's limits", hippodrome::BenchCommand},
    {"compare", "check a device against the CPU, operation by operation",
     hippodrome::CompareCommand},
};

}  // namespace

int main(int argc, char** argv) {
  return hippodrome::RunSubcommand("hippodrome_bench", kSubcommands, argc, argv);
}
