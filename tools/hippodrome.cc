// The one executable: dispatches to its subcommands.
#include <cstdio>
#include <exception>
#include <string>

#include "tools/commands.h"
#include "tools/convert/convert_command.h"

namespace {

struct Subcommand {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);
};

constexpr Subcommand kSubcommands[] = {
    {"serve", "serve models over HTTP and gRPC", hippodrome::ServeCommand},
    {"generate", "continue a prompt on the terminal", hippodrome::GenerateCommand},
    {"convert", "make a model directory from a published checkpoint", hippodrome::ConvertCommand},
    {"inspect", "describe a model directory or a tensor file", hippodrome::InspectCommand},
    {"forward", "write the logits of given token ids", hippodrome::ForwardCommand},
    {"kernels", "write or draw the convolution kernels of a model", hippodrome::KernelsCommand},
    {"eval", "measure a model on data", hippodrome::EvalCommand},
    {"bench", "measure speed as fractions of this machine's limits", hippodrome::BenchCommand},
};

void PrintUsage(std::FILE* out) {
  std::fprintf(out, "usage: hippodrome COMMAND [options]   (COMMAND --help says more)\n");
  for (const Subcommand& command : kSubcommands) {
    std::fprintf(out, "  %-9s %s\n", command.name, command.summary);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    PrintUsage(stdout);
    return 0;
  }
  for (const Subcommand& command : kSubcommands) {
    if (name != command.name) continue;
    try {
      return command.run(argc - 1, argv + 1);
    } catch (const std::exception& error) {  // out of memory, mostly
      std::fprintf(stderr, "hippodrome %s: %s\n", command.name, error.what());
      return 1;
    }
  }
  if (!name.empty()) std::fprintf(stderr, "hippodrome: unknown command '%s'\n", name.c_str());
  PrintUsage(stderr);
  return 2;
}
