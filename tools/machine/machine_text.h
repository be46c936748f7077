#ifndef HIPPODROME_TOOLS_MACHINE_MACHINE_TEXT_H_
#define HIPPODROME_TOOLS_MACHINE_MACHINE_TEXT_H_

#include <string>

namespace hippodrome {

// What the program sees of the machine, in lines: processor, cpus, NUMA nodes, caches, memory, and
// how much of a block that it allocates and writes is in huge pages, with what helps where that is
// not all. What the system does not tell is "unknown". `root`: as that of ReadSystemFile().
std::string MachineText(const std::string& root = "");

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MACHINE_MACHINE_TEXT_H_
