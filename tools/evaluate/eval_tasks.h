// `hippodrome eval TASK`, by families of tasks. Each takes the task as argv[0] and returns its exit
// code.
#ifndef HIPPODROME_TOOLS_EVALUATE_EVAL_TASKS_H_
#define HIPPODROME_TOOLS_EVALUATE_EVAL_TASKS_H_

namespace hippodrome {

int EvalPerplexity(int argc, char** argv);
// Perplexity by position and by length of context.
int EvalPositions(int argc, char** argv);
int EvalLm(int argc, char** argv);
int EvalChoices(int argc, char** argv);
// All of GLUE.
int EvalGlue(int argc, char** argv);
// argv[0] names a task of GLUE.
int EvalGlueTask(int argc, char** argv);
int EvalClassification(int argc, char** argv);
int EvalSquad(int argc, char** argv);
int EvalSyntax(int argc, char** argv);
// Of SCROLLS.
int EvalContractNli(int argc, char** argv);
int EvalQuality(int argc, char** argv);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_EVAL_TASKS_H_
