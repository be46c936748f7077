// In place of the subcommands that HIPPODROME_COMMANDS=SERVING leaves out.
#include <cstdio>

#include "tools/commands/commands.h"
#include "tools/convert/convert_command.h"
#include "tools/convert/export_command.h"

namespace hippodrome {
namespace {

int NotBuilt(char** argv) {
  std::fprintf(stderr,
               "hippodrome %s: not built yet; build it with: "
               "cmake --preset release && cmake --build --preset release --target hippodrome\n",
               argv[0]);
  return 1;
}

}  // namespace

int BenchCommand(int, char** argv) { return NotBuilt(argv); }
int CompareCommand(int, char** argv) { return NotBuilt(argv); }
int ConvertCommand(int, char** argv) { return NotBuilt(argv); }
int EvalCommand(int, char** argv) { return NotBuilt(argv); }
int ExportCommand(int, char** argv) { return NotBuilt(argv); }
int FinetuneCommand(int, char** argv) { return NotBuilt(argv); }
int ForwardCommand(int, char** argv) { return NotBuilt(argv); }
int GradientsCommand(int, char** argv) { return NotBuilt(argv); }
int InspectCommand(int, char** argv) { return NotBuilt(argv); }
int KernelsCommand(int, char** argv) { return NotBuilt(argv); }
int TokenizerCommand(int, char** argv) { return NotBuilt(argv); }
int TrainCommand(int, char** argv) { return NotBuilt(argv); }

}  // namespace hippodrome
