#include "server/reload.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome::reload_test {
namespace {

class ReloadTest : public testing::Test {
 protected:
  // Something that writes its name where it is put into force.
  void Add(const std::string& name) {
    reloadables_.Add({name, [this, name](const ServerOptions&) {
                        return absl::StatusOr<std::function<void()>>(
                            [this, name] { done_.push_back(name); });
                      }});
  }

  Reloadables reloadables_;
  std::vector<std::string> done_;
};

TEST_F(ReloadTest, AllThatIsNewComesIntoForce) {
  Add("a");
  reloadables_.Add({"same", [](const ServerOptions&) {
                      return absl::StatusOr<std::function<void()>>(nullptr);
                    }});
  Add("b");
  const auto names = reloadables_.Reload(ServerOptions());
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(*names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(done_, *names);
}

TEST_F(ReloadTest, WhatIsWrongChangesNothing) {
  Add("a");
  reloadables_.Add({"keys", [](const ServerOptions&) {
                      return absl::StatusOr<std::function<void()>>(InvalidArgument("line 3"));
                    }});
  Add("b");
  const auto names = reloadables_.Reload(ServerOptions());
  EXPECT_TRUE(absl::IsInvalidArgument(names.status()));
  EXPECT_EQ(Message(names.status()), "keys: line 3");
  EXPECT_TRUE(done_.empty());
}

TEST_F(ReloadTest, TheOptionsOfTheMomentAreAsked) {
  ServerOptions options;
  options.admin_address = "here:1";
  std::string seen;
  reloadables_.Add({"a", [&](const ServerOptions& now) {
                      seen = now.admin_address;
                      return absl::StatusOr<std::function<void()>>(nullptr);
                    }});
  EXPECT_TRUE(reloadables_.Reload(options).ok());
  EXPECT_EQ(seen, "here:1");
}

}  // namespace
}  // namespace hippodrome::reload_test
