#include "tools/machine/cpu_topology.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "tools/machine/system_files.h"

namespace hippodrome {
namespace {

constexpr int kMostCpus = 1 << 16;  // more are a malformed list
constexpr char kCpuFolder[] = "/sys/devices/system/cpu/";
constexpr char kNodeFolder[] = "/sys/devices/system/node/";

// A number at the beginning of `text`, taken off; -1 where there is none.
int TakeNumber(std::string_view& text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value >= kMostCpus) return -1;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return value;
}

// One range at the beginning of `text`, taken off.
bool TakeRange(std::string_view& text, CpuList& cpus) {
  const int first = TakeNumber(text);
  int last = first;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    last = TakeNumber(text);
  }
  if (first < 0 || last < first || (!cpus.empty() && first <= cpus.back())) return false;
  for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return true;
}

// Empty where it is missing or malformed.
CpuList ReadCpuList(const std::string& root, const std::string& path) {
  return ParseCpuList(ReadSystemFile(root, path)).value_or(CpuList());
}

std::string CpuPath(int cpu, const std::string& file) {
  return kCpuFolder + ("cpu" + std::to_string(cpu)) + "/" + file;
}

CpuList ReadAllowed(const std::string& root, const CpuList& online) {
  const std::string status = ReadSystemFile(root, "/proc/thread-self/status");
  const auto allowed = ParseCpuList(SystemField(status, "Cpus_allowed_list"));
  return allowed && !allowed->empty() ? *allowed : online;
}

std::vector<CpuList> ReadCores(const std::string& root, const CpuList& allowed) {
  std::vector<CpuList> cores;
  for (CpuList rest = allowed; !rest.empty();) {
    const int cpu = rest.front();
    const CpuList siblings = ReadCpuList(root, CpuPath(cpu, "topology/thread_siblings_list"));
    CpuList core = CommonCpus(siblings, rest);
    if (!std::ranges::binary_search(core, cpu)) core = {cpu};
    std::erase_if(rest, [&](int other) { return std::ranges::binary_search(core, other); });
    cores.push_back(std::move(core));
  }
  return cores;
}

std::vector<NumaNode> ReadNodes(const std::string& root) {
  std::vector<NumaNode> nodes;
  for (const int id : ReadCpuList(root, std::string(kNodeFolder) + "online")) {
    const std::string name = std::to_string(id);
    const std::string folder = kNodeFolder + ("node" + name) + "/";
    const std::string memory = ReadSystemFile(root, folder + "meminfo");
    nodes.push_back({id, ReadCpuList(root, folder + "cpulist"),
                     ParseSystemSize(SystemField(memory, "Node " + name + " MemTotal"))});
  }
  return nodes;
}

}  // namespace

std::optional<CpuList> ParseCpuList(const std::string& text) {
  CpuList cpus;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (!TakeRange(rest, cpus)) return std::nullopt;
    if (rest.empty()) break;
    if (!rest.starts_with(',') || rest.size() == 1) return std::nullopt;
    rest.remove_prefix(1);
  }
  return cpus;
}

std::string CpuListText(const CpuList& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (end - i > 1) text += "-" + std::to_string(cpus[end - 1]);
    i = end;
  }
  return text;
}

CpuList CommonCpus(const CpuList& a, const CpuList& b) {
  CpuList both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

CpuTopology ReadCpuTopology(const std::string& root) {
  CpuTopology topology;
  topology.present = ReadCpuList(root, std::string(kCpuFolder) + "present");
  topology.online = ReadCpuList(root, std::string(kCpuFolder) + "online");
  topology.allowed = ReadAllowed(root, topology.online);
  topology.cores = ReadCores(root, topology.allowed);
  topology.nodes = ReadNodes(root);
  return topology;
}

ProcessorName ReadProcessorName(const std::string& root) {
  const std::string text = ReadSystemFile(root, "/proc/cpuinfo");
  return {SystemField(text, "model name"), SystemField(text, "vendor_id"),
          SystemField(text, "cpu family"), SystemField(text, "model")};
}

std::vector<CpuCache> ReadCpuCaches(int cpu, const std::string& root) {
  std::vector<CpuCache> caches;
  for (int index = 0;; ++index) {
    const std::string folder = CpuPath(cpu, "cache/index" + std::to_string(index) + "/");
    const std::string level = ReadSystemFile(root, folder + "level");
    if (level.empty()) return caches;
    const std::string type = ReadSystemFile(root, folder + "type");
    const std::string kind = type == "Data" ? "d" : type == "Instruction" ? "i" : "";
    const auto bytes = ParseSystemSize(ReadSystemFile(root, folder + "size"));
    if (!bytes) continue;
    caches.push_back({"L" + level + kind, *bytes, ReadCpuList(root, folder + "shared_cpu_list")});
  }
}

}  // namespace hippodrome
