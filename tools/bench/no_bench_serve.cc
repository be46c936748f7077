// In place of bench_serve.cc in builds without the server.
#include <cstdio>

#include "tools/bench/bench_serve.h"

namespace hippodrome {

int BenchServeCommand(int, char**) {
  std::fprintf(stderr,
               "hippodrome bench serve: this program was built without the network "
               "(HIPPODROME_SERVER=OFF)\n");
  return 1;
}

}  // namespace hippodrome
