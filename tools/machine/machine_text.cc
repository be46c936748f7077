#include "tools/machine/machine_text.h"

#include <cstring>
#include <iomanip>
#include <optional>
#include <sstream>
#include <vector>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu_instruction_set.h"
#include "tools/machine/cpu_topology.h"
#include "tools/machine/system_files.h"
#include "tools/machine/system_memory.h"

namespace hippodrome {
namespace {

constexpr char kUnknown[] = "unknown";
constexpr int64_t kTriedBytes = int64_t{64} << 20;

std::string OrUnknown(const std::string& text) { return text.empty() ? kUnknown : text; }

std::string SizeText(std::optional<int64_t> bytes) {
  if (!bytes) return kUnknown;
  const char* const units[] = {" KiB", " MiB", " GiB"};
  double size = static_cast<double>(*bytes) / 1024;
  size_t unit = 0;
  for (; unit + 1 < std::size(units) && size >= 1024; ++unit) size /= 1024;
  std::ostringstream text;
  text << std::setprecision(4) << size << units[unit];
  return text.str();
}

// Lines of a label and what it stands for.
class Lines {
 public:
  void Add(const std::string& label, const std::string& text) {
    constexpr int kLabelColumns = 24;
    out_ << std::left << std::setw(kLabelColumns) << label << text << '\n';
  }
  std::string text() const { return out_.str(); }

 private:
  std::ostringstream out_;
};

// "0,4 1,5", of cores of which several threads may be used.
std::string SiblingsText(const std::vector<CpuList>& cores) {
  std::string text;
  for (const CpuList& core : cores) {
    if (core.size() > 1) text += (text.empty() ? "" : " ") + CpuListText(core);
  }
  return text.empty() ? "none" : text;
}

void AddProcessor(const std::string& root, Lines& lines) {
  const ProcessorName name = ReadProcessorName(root);
  lines.Add("processor", OrUnknown(name.name));
  lines.Add("vendor", OrUnknown(name.vendor));
  lines.Add("family, model", OrUnknown(name.family) + ", " + OrUnknown(name.model));
  lines.Add("instruction set", CpuInstructionSet());
}

void AddCpus(const CpuTopology& topology, Lines& lines) {
  lines.Add("cpus present", OrUnknown(CpuListText(topology.present)));
  lines.Add("cpus online", OrUnknown(CpuListText(topology.online)));
  if (topology.allowed.empty()) return lines.Add("cpus allowed", kUnknown);
  lines.Add("cpus allowed", CpuListText(topology.allowed) + ": " +
                                std::to_string(topology.allowed.size()) + ", on " +
                                std::to_string(topology.cores.size()) + " core(s)");
  lines.Add("SMT siblings", SiblingsText(topology.cores));
}

void AddNodes(const CpuTopology& topology, Lines& lines) {
  if (topology.nodes.empty()) lines.Add("NUMA nodes", kUnknown);
  for (const NumaNode& node : topology.nodes) {
    const std::string cpus = node.cpus.empty() ? "no cpus" : "cpus " + CpuListText(node.cpus);
    lines.Add("NUMA node " + std::to_string(node.id),
              cpus + ", memory " + SizeText(node.memory_bytes));
  }
}

void AddCaches(const CpuTopology& topology, const std::string& root, Lines& lines) {
  const int cpu = topology.allowed.empty() ? 0 : topology.allowed.front();
  const std::vector<CpuCache> caches = ReadCpuCaches(cpu, root);
  if (caches.empty()) lines.Add("caches", kUnknown);
  for (const CpuCache& cache : caches) {
    lines.Add(cache.name + " cache",
              SizeText(cache.bytes) + ", of cpus " + OrUnknown(CpuListText(cache.shared_by)));
  }
}

// What helps where not all of a block is in huge pages.
std::string HugePageHint(const std::string& mode, const std::string& root) {
  if (SystemField(ReadSystemFile(root, "/proc/self/status"), "THP_enabled") == "0") {
    return "whoever started this process has forbidden it (PR_SET_THP_DISABLE)";
  }
  if (mode == "never") {
    return "the system gives none: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return "memory is in pieces, or nearly full: echo 1 > /proc/sys/vm/compact_memory";
}

void AddMemory(const std::string& root, Lines& lines) {
  const SystemMemory memory = ReadSystemMemory(root);
  lines.Add("memory",
            SizeText(memory.total_bytes) + ", available " + SizeText(memory.available_bytes));
  const std::string mode = ReadHugePageMode(root);
  lines.Add("transparent huge pages", OrUnknown(mode));
  // As weights and states are allocated.
  const auto block = AllocateZeroed(static_cast<size_t>(kTriedBytes));
  std::memset(block.get(), 1, static_cast<size_t>(kTriedBytes));
  const auto huge = BytesInHugePages(block.get(), static_cast<size_t>(kTriedBytes), root);
  lines.Add("in huge pages", SizeText(huge) + " of " + SizeText(kTriedBytes) + " allocated");
  if (huge && *huge < kTriedBytes) lines.Add("", HugePageHint(mode, root));
}

}  // namespace

std::string MachineText(const std::string& root) {
  Lines lines;
  const CpuTopology topology = ReadCpuTopology(root);
  AddProcessor(root, lines);
  AddCpus(topology, lines);
  AddNodes(topology, lines);
  AddCaches(topology, root, lines);
  AddMemory(root, lines);
  return lines.text();
}

}  // namespace hippodrome
