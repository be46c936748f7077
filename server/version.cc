#include "server/version.h"

#include <fmt/format.h>

#include "kernels/cpu_instruction_set.h"
#include "server/git_commit.h"

namespace hippodrome {

const BuildInfo& Build() {
#ifdef __clang__
  static const std::string compiler = "Clang " __clang_version__;
#else
  static const std::string compiler = "GCC " __VERSION__;
#endif
  static const BuildInfo info{HIPPODROME_VERSION, HIPPODROME_GIT_COMMIT, compiler,
                              HIPPODROME_BACKENDS, CpuInstructionSet()};
  return info;
}

std::string VersionText() {
  const BuildInfo& build = Build();
  return fmt::format("hippodrome {}\ncommit {}\ncompiler {}\nbackends {}\ninstruction set {}\n",
                     build.version, build.git, build.compiler, build.backends, build.cpu_isa);
}

}  // namespace hippodrome
