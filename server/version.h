#ifndef HIPPODROME_SERVER_VERSION_H_
#define HIPPODROME_SERVER_VERSION_H_

#include <string>

namespace hippodrome {

// What runs.
struct BuildInfo {
  std::string version;   // "0.1.0"
  std::string git;       // the commit, with "-dirty" where sources differed; "unknown" without git
  std::string compiler;  // "GCC 12.2.0"
  std::string backends;  // "cpu", or "cpu,cuda"
  std::string cpu_isa;   // that the CPU backend uses on this machine, as Highway calls it
};
const BuildInfo& Build();

inline const std::string& Version() { return Build().version; }
// All of it, for --version.
std::string VersionText();

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_VERSION_H_
