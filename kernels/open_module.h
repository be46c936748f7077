// Modules: libraries of this project that are loaded when they are asked for, so that the program
// works without what they link to.
#ifndef HIPPODROME_KERNELS_OPEN_MODULE_H_
#define HIPPODROME_KERNELS_OPEN_MODULE_H_

#include <string>

namespace hippodrome {

// What to open as `module`, a file's name, for a program that lies in `folder`: the one beside it,
// as it is built; else the one in `installed`, which is relative to `folder`; else its mere name,
// which the loader looks for.
std::string FindModule(const std::string& module, const std::string& folder,
                       const std::string& installed);

// Loads it for the running program. It is never closed: what it makes may live as long as the
// process. Null, and dlerror() tells why.
void* OpenModule(const std::string& module);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_OPEN_MODULE_H_
