// In place of bench_serve.cc in builds without the server.
#include "engine/base/status.h"
#include "tools/bench/bench_serve.h"

namespace hippodrome {

absl::StatusOr<BenchResult> BenchServe(const ServeBenchmark&) {
  return Unavailable("this program was built without gRPC (HIPPODROME_SERVER=OFF)");
}

}  // namespace hippodrome
