// The subcommands of the executable. Each takes its own name as argv[0] and returns the exit code:
// 0 success, 1 failure with one line on stderr, 2 usage error.
#ifndef HIPPODROME_TOOLS_COMMANDS_COMMANDS_H_
#define HIPPODROME_TOOLS_COMMANDS_COMMANDS_H_

namespace hippodrome {

int BatchCommand(int argc, char** argv);
int BenchCommand(int argc, char** argv);
int CompareCommand(int argc, char** argv);
int EvalCommand(int argc, char** argv);
int FinetuneCommand(int argc, char** argv);
int ForwardCommand(int argc, char** argv);
int GenerateCommand(int argc, char** argv);
int GradientsCommand(int argc, char** argv);
int InspectCommand(int argc, char** argv);
int KernelsCommand(int argc, char** argv);
int KeyCommand(int argc, char** argv);
// Runs until SIGTERM or SIGINT, then gives running streams their grace period, which a second
// signal ends. 0 after a signal.
int ServeCommand(int argc, char** argv);
int TokenizerCommand(int argc, char** argv);
int TopCommand(int argc, char** argv);
int TrainCommand(int argc, char** argv);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMANDS_COMMANDS_H_
