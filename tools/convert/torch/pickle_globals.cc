#include "tools/convert/torch/pickle_globals.h"

#include <algorithm>
#include <array>

namespace hippodrome {
namespace {

constexpr std::array<std::string_view, 29> kModules = {"_pickle",
                                                       "_posixsubprocess",
                                                       "_thread",
                                                       "asyncio",
                                                       "bdb",
                                                       "code",
                                                       "codeop",
                                                       "commands",
                                                       "ctypes",
                                                       "imp",
                                                       "importlib",
                                                       "marshal",
                                                       "multiprocessing",
                                                       "nt",
                                                       "os",
                                                       "pdb",
                                                       "pickle",
                                                       "pip",
                                                       "popen2",
                                                       "posix",
                                                       "pty",
                                                       "runpy",
                                                       "shutil",
                                                       "signal",
                                                       "socket",
                                                       "subprocess",
                                                       "sys",
                                                       "timeit",
                                                       "webbrowser"};

constexpr std::array<std::string_view, 11> kBuiltins = {
    "__import__", "apply", "breakpoint", "compile", "eval", "exec",
    "execfile",   "file",  "globals",    "input",   "open"};

template <size_t N>
bool Contains(const std::array<std::string_view, N>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

bool IsDangerousGlobal(std::string_view module, std::string_view name) {
  const std::string_view top = module.substr(0, module.find('.'));
  if (top == "builtins" || top == "__builtin__") {
    return Contains(kBuiltins, name.substr(0, name.find('.')));
  }
  return Contains(kModules, top);
}

}  // namespace hippodrome
