#include "kernels/open_module.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/temporary_directory.h"

namespace hippodrome::open_module_test {
namespace {

TEST(OpenModuleTest, TheModuleIsBesideTheProgramOrInstalled) {
  const std::string module = "libsome.so";
  const TemporaryDirectory tree;
  for (const char* folder : {"bin", "lib/programs"}) {
    std::filesystem::create_directories(tree.File(folder));
  }
  const auto find = [&] { return FindModule(module, tree.File("bin"), "../lib/programs"); };
  EXPECT_EQ(find(), module);
  const std::string installed = tree.Write("lib/programs/" + module, "");
  EXPECT_EQ(find(), installed);
  const std::string beside = tree.Write("bin/" + module, "");
  EXPECT_EQ(find(), beside);
}

TEST(OpenModuleTest, WhatIsNoModuleIsNotOpened) {
  EXPECT_EQ(OpenModule("libhippodrome_none.so"), nullptr);
}

}  // namespace
}  // namespace hippodrome::open_module_test
