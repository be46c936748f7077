#include "kernels/open_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace hippodrome {

std::string FindModule(const std::string& module, const std::string& folder,
                       const std::string& installed) {
  const std::filesystem::path program(folder);
  for (const auto& place : {program, program / installed}) {
    std::error_code error;
    const auto file = (place / module).lexically_normal();
    if (std::filesystem::exists(file, error)) return file;
  }
  return module;
}

void* OpenModule(const std::string& module) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string file =
      error ? module : FindModule(module, program.parent_path(), HIPPODROME_INSTALLED_MODULES);
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace hippodrome
