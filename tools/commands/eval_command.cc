#include "tools/command_line/subcommand.h"
#include "tools/commands/commands.h"
#include "tools/evaluate/encoders/glue_tasks.h"
#include "tools/evaluate/eval_tasks.h"

namespace hippodrome {

int EvalCommand(int argc, char** argv) {
  const Subcommand tasks[] = {
      {"perplexity", "of a decoder over a text", EvalPerplexity},
      {"positions", "perplexity of a decoder by position and context length", EvalPositions},
      {"lm", "of a decoder in tasks for language models", EvalLm},
      {"choices", "of continuations of contexts, by a decoder", EvalChoices},
      {"glue", "all tasks of GLUE, by a classifier for each", EvalGlue},
      {GlueTaskNames().c_str(), "tasks of GLUE", EvalGlueTask},
      {"classification", "of the texts in another table", EvalClassification},
      {"squad", "questions about paragraphs", EvalSquad},
      {"contract_nli", "hypotheses about contracts, of SCROLLS", EvalContractNli},
      {"quality", "questions about long texts with four answers, of SCROLLS", EvalQuality},
      {"syntax", "minimal pairs of sentences, by a masked LM", EvalSyntax},
  };
  return RunSubcommand({.name = "hippodrome eval",
                        .summary = "Measures a model on data; each command is a task.",
                        .commands = tasks,
                        .version = ""},
                       argc, argv);
}

}  // namespace hippodrome
