// `bench serve`: load on a running server, over HTTP or gRPC.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_SERVE_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_SERVE_H_

namespace hippodrome {

// The subcommand; as those of commands.h. Exit code 1 also where a point of the sweep had no
// answer.
int BenchServeCommand(int argc, char** argv);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_SERVE_H_
