// A tree of files as /proc and /sys, for tests.
#ifndef HIPPODROME_TESTS_TOOLS_MACHINE_SYSTEM_TREE_H_
#define HIPPODROME_TESTS_TOOLS_MACHINE_SYSTEM_TREE_H_

#include <filesystem>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace hippodrome {

class SystemTree {
 public:
  const std::string& root() const { return directory_.path(); }
  // `path` begins with a slash.
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = directory_.File(path.substr(1));
    std::filesystem::create_directories(file.parent_path());
    directory_.Write(path.substr(1), text);
  }
  void Remove(const std::string& path) const {
    std::filesystem::remove_all(directory_.File(path.substr(1)));
  }

 private:
  TemporaryDirectory directory_;
};

// Two nodes of four processors, of which 7 is offline: the siblings of 0 to 3 are 4 to 7. The
// process may use all but 1.
inline void WriteTwoNodes(const SystemTree& tree) {
  const std::string cpus = "/sys/devices/system/cpu/";
  tree.Write(cpus + "present", "0-7\n");
  tree.Write(cpus + "online", "0-6\n");
  for (int cpu = 0; cpu < 7; ++cpu) {
    const std::string low = std::to_string(cpu % 4);
    const std::string high = cpu % 4 == 3 ? "" : "," + std::to_string(cpu % 4 + 4);
    tree.Write(cpus + "cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
               low + high + "\n");
  }
  const std::string nodes = "/sys/devices/system/node/";
  tree.Write(nodes + "online", "0-1\n");
  tree.Write(nodes + "node0/cpulist", "0-1,4-5\n");
  tree.Write(nodes + "node0/meminfo",
             "Node 0 MemTotal:       16384 kB\nNode 0 MemFree:        1024 kB\n");
  tree.Write(nodes + "node1/cpulist", "2-3,6\n");
  tree.Write(nodes + "node1/meminfo", "Node 1 MemTotal:       8192 kB\n");
  tree.Write("/proc/thread-self/status", "Name:\thippodrome\nCpus_allowed_list:\t0,2-6\n");
  const std::string cache = cpus + "cpu0/cache/";
  const char* const kinds[][4] = {{"1", "Data", "48K", "0,4"},
                                  {"1", "Instruction", "32K", "0,4"},
                                  {"2", "Unified", "2048K", "0,4"},
                                  {"3", "Unified", "320M", "0-7"}};
  for (int i = 0; i < 4; ++i) {
    const std::string index = cache + "index" + std::to_string(i) + "/";
    tree.Write(index + "level", kinds[i][0]);
    tree.Write(index + "type", kinds[i][1]);
    tree.Write(index + "size", kinds[i][2]);
    tree.Write(index + "shared_cpu_list", kinds[i][3]);
  }
  tree.Write("/proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
             "model name\t: Intel(R) Xeon(R): 8480\n\nprocessor\t: 1\nmodel\t\t: 1\n");
  tree.Write("/proc/meminfo", "MemTotal:       24576 kB\nMemAvailable:   12288 kB\n");
  tree.Write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_MACHINE_SYSTEM_TREE_H_
