// Where the threads of the process run, as --threads, --pin and --numa-node ask for it.
#ifndef HIPPODROME_TOOLS_MACHINE_CPU_PLACEMENT_H_
#define HIPPODROME_TOOLS_MACHINE_CPU_PLACEMENT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "kernels/make_backend.h"
#include "tools/machine/cpu_topology.h"

namespace hippodrome {

constexpr int kMostNumaNodes = 1024;  // that Linux can be told of

struct CpuPlacement {
  int threads = 0;   // as that of CpuOptions
  bool pin = false;  // each computing thread stays on a processor of its own
  // All threads stay on that node, in [0, kMostNumaNodes), and take memory from it while it has
  // some.
  std::optional<int> numa_node;
};

// The processors that `placement` leaves to the process: those of the node that are allowed, or all
// that are. kFailedPrecondition: there is no such node, or none is allowed.
absl::StatusOr<CpuList> PlacedCpus(const CpuPlacement& placement, const CpuTopology& topology);

// Of `cpus`, those that `placement` pins threads to, in their order: first one of each core, then
// their SMT siblings. kFailedPrecondition where there are fewer than threads.
absl::StatusOr<std::vector<int>> PinnedCpus(const CpuPlacement& placement, const CpuList& cpus,
                                            const CpuTopology& topology);

// Places the calling thread, and with it those that it starts from then on; computing threads are
// pinned by the pools that the result is for. To be called once, while there are no other threads,
// and before memory is taken that matters. Errors: those above; kFailedPrecondition where the
// system refuses.
absl::StatusOr<CpuOptions> PlaceThreads(const CpuPlacement& placement);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MACHINE_CPU_PLACEMENT_H_
