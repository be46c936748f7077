#include "tools/machine/cpu_placement.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

// "0 (cpus 0-7), 1 (cpus 8-15)"
std::string NodesText(const std::vector<NumaNode>& nodes) {
  std::string text;
  for (const NumaNode& node : nodes) {
    text += (text.empty() ? "" : ", ") + std::to_string(node.id) +
            (node.cpus.empty() ? " (no cpus)" : " (cpus " + CpuListText(node.cpus) + ")");
  }
  return text;
}

absl::Status StayOn(const CpuList& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return absl::OkStatus();
  return FailedPrecondition("--numa-node: this process may not choose cpus " + CpuListText(cpus) +
                            ": " + std::strerror(errno));
}

absl::Status TakeMemoryFrom(int node) {
  constexpr size_t kBits = CHAR_BIT * sizeof(unsigned long);  // NOLINT(google-runtime-int)
  std::array<unsigned long, kMostNumaNodes / kBits> mask{};   // NOLINT(google-runtime-int)
  mask[static_cast<size_t>(node) / kBits] |= 1UL << (static_cast<size_t>(node) % kBits);
  // The kernel takes one bit less than it is told.
  if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), kMostNumaNodes + 1) == 0) {
    return absl::OkStatus();
  }
  // Containers may not say so, as a rule. Then memory comes from the node of the thread that first
  // writes it, which is the same.
  if (errno == EPERM || errno == ENOSYS) return absl::OkStatus();
  return FailedPrecondition("--numa-node: this process may have no memory of node " +
                            std::to_string(node) + ": " + std::strerror(errno));
}

}  // namespace

absl::StatusOr<CpuList> PlacedCpus(const CpuPlacement& placement, const CpuTopology& topology) {
  if (topology.allowed.empty()) {
    return FailedPrecondition(
        "--pin and --numa-node: neither /proc/thread-self/status nor "
        "/sys/devices/system/cpu/online "
        "says which cpus there are");
  }
  if (!placement.numa_node) return topology.allowed;
  const int id = *placement.numa_node;
  const auto node = std::ranges::find(topology.nodes, id, &NumaNode::id);
  const std::string called = "--numa-node is " + std::to_string(id);
  if (topology.nodes.empty()) {
    return FailedPrecondition(called +
                              ": the system tells of no nodes (/sys/devices/system/node/online)");
  }
  if (node == topology.nodes.end()) {
    return FailedPrecondition(called + ", expected one of " + NodesText(topology.nodes));
  }
  CpuList cpus = CommonCpus(node->cpus, topology.allowed);
  if (!cpus.empty()) return cpus;
  return FailedPrecondition(called + ", of whose cpus this process may use none, only " +
                            CpuListText(topology.allowed) + "; the nodes are " +
                            NodesText(topology.nodes));
}

absl::StatusOr<std::vector<int>> PinnedCpus(const CpuPlacement& placement, const CpuList& cpus,
                                            const CpuTopology& topology) {
  std::vector<int> pinned;
  for (size_t sibling = 0; pinned.size() < cpus.size(); ++sibling) {
    for (const CpuList& core : topology.cores) {
      const CpuList placed = CommonCpus(core, cpus);
      if (sibling < placed.size()) pinned.push_back(placed[sibling]);
    }
  }
  const auto threads = static_cast<size_t>(placement.threads);
  if (threads > pinned.size()) {
    return FailedPrecondition("--threads is " + std::to_string(threads) + " with --pin, expected " +
                              std::to_string(pinned.size()) +
                              " at most: this process may use cpus " + CpuListText(cpus));
  }
  if (threads > 0) pinned.resize(threads);
  return pinned;
}

absl::StatusOr<CpuOptions> PlaceThreads(const CpuPlacement& placement) {
  CpuOptions options{.threads = placement.threads};
  if (!placement.pin && !placement.numa_node) return options;
  const CpuTopology topology = ReadCpuTopology();
  HIPPODROME_ASSIGN_OR_RETURN(const CpuList cpus, PlacedCpus(placement, topology));
  if (placement.pin) {
    HIPPODROME_ASSIGN_OR_RETURN(options.cores, PinnedCpus(placement, cpus, topology));
  }
  if (placement.numa_node) {
    HIPPODROME_RETURN_IF_ERROR(StayOn(cpus));
    HIPPODROME_RETURN_IF_ERROR(TakeMemoryFrom(*placement.numa_node));
  }
  return options;
}

}  // namespace hippodrome
