// What wrappers of modules put before the names of a model's tensors.
#ifndef HIPPODROME_TOOLS_CONVERT_MODELS_MODULE_PREFIXES_H_
#define HIPPODROME_TOOLS_CONVERT_MODELS_MODULE_PREFIXES_H_

#include <string>

namespace hippodrome {

struct ModuleName {
  std::string name;       // without the prefixes
  bool in_model = false;  // "model." was one of them: in Lightning checkpoints, part of the model
};

// Takes "module." (DataParallel), "_orig_mod." (torch.compile) and "model." (Lightning) from the
// front of `name`, any number of them in any order. No published name begins so.
ModuleName RemoveModulePrefixes(const std::string& name);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODELS_MODULE_PREFIXES_H_
