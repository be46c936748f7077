#include <string>

#include "tools/command_line/command_line.h"
#include "tools/commands/commands.h"
#include "tools/evaluate/eval_tasks.h"
#include "tools/evaluate/glue_tasks.h"

namespace hippodrome {
namespace {

const CommandSpec kEvalSpec = {
    .usage =
        "usage: hippodrome eval TASK [options]   (TASK --help says more)\n"
        "  perplexity       of a decoder over a text\n"
        "  cola sst2 mrpc qqp stsb mnli qnli rte wnli   tasks of GLUE\n"
        "  classification   of the texts in another table\n"
        "  squad            questions about paragraphs\n"
        "  syntax           minimal pairs of sentences, by a masked LM"};

}  // namespace

int EvalCommand(int argc, char** argv) {
  const std::string task = argc > 1 ? argv[1] : "";
  if (task == "perplexity") return EvalPerplexity(argc, argv);
  if (task == "classification") return EvalClassification(argc, argv);
  if (task == "squad") return EvalSquad(argc, argv);
  if (task == "syntax") return EvalSyntax(argc, argv);
  if (FindGlueTask(task) != nullptr) return EvalGlue(argc, argv);
  if (AsksForHelp(argc, argv)) return PrintUsage(kEvalSpec);
  return UsageError(kEvalSpec,
                    Usage(task.empty() ? "no task is given" : "unknown task '" + task + "'"));
}

}  // namespace hippodrome
