// Which globals a pickle may name.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_GLOBALS_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_GLOBALS_H_

#include <string_view>

namespace hippodrome {

// True for globals that serve to run code or to reach the system (os.system, builtins.eval, ..).
// They would be inert here too, but a file that names one is an attack and is refused whole.
bool IsDangerousGlobal(std::string_view module, std::string_view name);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_PICKLE_GLOBALS_H_
