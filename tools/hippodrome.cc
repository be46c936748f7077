// The one executable: dispatches to its subcommands.
#include "server/version.h"
#include "tools/command_line/subcommand.h"
#include "tools/commands/commands.h"
#include "tools/convert/convert_command.h"
#include "tools/convert/export_command.h"

namespace {

constexpr hippodrome::Subcommand kSubcommands[] = {
    {"serve", "serve models over HTTP and gRPC", hippodrome::ServeCommand},
    {"key", "make API keys for callers of the server", hippodrome::KeyCommand},
    {"top", "show what a running server does", hippodrome::TopCommand},
    {"generate", "continue a prompt on the terminal", hippodrome::GenerateCommand},
    {"batch", "answer each line of a file", hippodrome::BatchCommand},
    {"convert", "make a model directory from a published checkpoint", hippodrome::ConvertCommand},
    {"export", "write a model directory in the layout of the published code",
     hippodrome::ExportCommand},
    {"inspect", "describe a model directory or a tensor file", hippodrome::InspectCommand},
    {"forward", "write the logits of given token ids", hippodrome::ForwardCommand},
    {"compare", "check a device against the CPU, operation by operation",
     hippodrome::CompareCommand},
    {"kernels", "write or draw the convolution kernels of a model", hippodrome::KernelsCommand},
    {"train", "train a model as a run file says", hippodrome::TrainCommand},
    {"finetune", "fine-tune an encoder for a task, over a grid of settings",
     hippodrome::FinetuneCommand},
    {"gradients", "write the gradients of a loss, to check training", hippodrome::GradientsCommand},
    {"eval", "measure a model on data", hippodrome::EvalCommand},
    {"tokenizer", "train a tokenizer, or encode texts for training", hippodrome::TokenizerCommand},
    {"bench", "measure speed as fractions of this machine's limits", hippodrome::BenchCommand},
};

}  // namespace

int main(int argc, char** argv) {
  return hippodrome::RunSubcommand(
      {.name = "hippodrome",
       .summary = "Serves, converts, evaluates and trains state-space language models.",
       .commands = kSubcommands,
       .version = hippodrome::VersionText()},
      argc, argv);
}
