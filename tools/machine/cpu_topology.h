// The processors of the machine: which there are, which of them this process may use, and what they
// share. A processor ("cpu") is what the system schedules on, a hardware thread of a core.
#ifndef HIPPODROME_TOOLS_MACHINE_CPU_TOPOLOGY_H_
#define HIPPODROME_TOOLS_MACHINE_CPU_TOPOLOGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hippodrome {

// Numbers of processors or nodes, ascending.
using CpuList = std::vector<int>;

// A list as Linux writes it: "0-3,8-11", or "" for none. Nothing where it is malformed.
std::optional<CpuList> ParseCpuList(const std::string& text);
// The same text again.
std::string CpuListText(const CpuList& cpus);
// What is in both.
CpuList CommonCpus(const CpuList& a, const CpuList& b);

struct NumaNode {
  int id = 0;
  CpuList cpus;                         // none: memory alone
  std::optional<int64_t> memory_bytes;  // nothing: unknown
};

struct CpuTopology {
  CpuList present;  // empty: unknown
  CpuList online;   // empty: unknown
  CpuList allowed;  // to the calling thread, by its affinity and the container; empty: unknown
  // Those that are allowed, by the cores that they are hardware threads of: SMT siblings together,
  // each processor once. One whose siblings are unknown is alone.
  std::vector<CpuList> cores;
  std::vector<NumaNode> nodes;  // empty: unknown
};

// `root`: as that of ReadSystemFile().
CpuTopology ReadCpuTopology(const std::string& root = "");

// As /proc/cpuinfo has it of the first processor; empty: unknown.
struct ProcessorName {
  std::string name, vendor, family, model;
};
ProcessorName ReadProcessorName(const std::string& root = "");

struct CpuCache {
  std::string name;  // "L1d", "L1i", "L2"
  int64_t bytes = 0;
  CpuList shared_by;  // empty: unknown
};
// Those of `cpu`, in the system's order.
std::vector<CpuCache> ReadCpuCaches(int cpu, const std::string& root = "");

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MACHINE_CPU_TOPOLOGY_H_
