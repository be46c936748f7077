#include "tools/convert/models/module_prefixes.h"

#include <string_view>

namespace hippodrome {

ModuleName RemoveModulePrefixes(const std::string& name) {
  constexpr std::string_view kModel = "model.";
  ModuleName result;
  std::string_view rest = name;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view prefix :
         {std::string_view("module."), std::string_view("_orig_mod."), kModel}) {
      if (!rest.starts_with(prefix)) continue;
      rest.remove_prefix(prefix.size());
      result.in_model |= prefix == kModel;
      found = true;
    }
  }
  result.name = rest;
  return result;
}

}  // namespace hippodrome
