#include "tools/convert/models/module_prefixes.h"

#include <gtest/gtest.h>

namespace hippodrome::module_prefixes_test {
namespace {

TEST(ModulePrefixesTest, AreRemovedInAnyOrder) {
  for (const std::string prefix : {"", "module.", "_orig_mod.", "model.", "module._orig_mod.",
                                   "_orig_mod.module.model.", "model.model."}) {
    const ModuleName found = RemoveModulePrefixes(prefix + "backbone.model.D");
    EXPECT_EQ(found.name, "backbone.model.D");
    EXPECT_EQ(found.in_model, prefix.find("model.") != std::string::npos) << prefix;
  }
}

TEST(ModulePrefixesTest, OnlyWholeWordsInFrontAre) {
  for (const std::string name : {"modules.x", "model", "model_ema.x", "bigs.module.x", ""}) {
    EXPECT_EQ(RemoveModulePrefixes(name).name, name);
    EXPECT_FALSE(RemoveModulePrefixes(name).in_model);
  }
}

}  // namespace
}  // namespace hippodrome::module_prefixes_test
