#include "server/access/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::access_control_test {
namespace {

using testing::HasSubstr;

std::string Entry(const std::string& name, const std::string& secret, const std::string& more) {
  return R"({"name": ")" + name + R"(", "secrets": [{"sha256": ")" + ToHex(DigestOf(secret)) +
         "\"}]" + more + "}";
}

class AccessControlTest : public testing::Test {
 protected:
  AccessControlTest() {
    Write(Entry("user", "hk-user", "") + "," + Entry("root", "hk-root", R"(, "admin": true)") +
          R"(, {"name": "late", "secrets": [{"sha256": ")" + ToHex(DigestOf("hk-late")) +
          R"(", "expires": "2020-01-01"}]})");
    EXPECT_TRUE(control_.Reload().ok());
  }
  void Write(const std::string& entries) {
    std::ofstream(path_) << "{\"keys\": [" << entries << "]}";
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }
  absl::StatusOr<std::shared_ptr<CallPermit>> Admit(const std::string& authorization,
                                                    Access access = Access::kKey) {
    return control_.Admit(authorization, access);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/keys.json";
  Metrics metrics_;
  AccessControl control_{path_, metrics_};
};

TEST_F(AccessControlTest, WithoutAFileEverybodyMayDoEverything) {
  AccessControl open("", metrics_);
  EXPECT_FALSE(open.has_keys());
  for (const Access access : {Access::kOpen, Access::kKey, Access::kAdminKey}) {
    EXPECT_EQ(*open.Admit(std::nullopt, access), nullptr);
    EXPECT_EQ(*open.Admit("", access), nullptr);
    EXPECT_EQ(*open.Admit("Basic x, y", access), nullptr);
  }
  EXPECT_TRUE(open.Reload().ok());
}

TEST_F(AccessControlTest, JobsAreAdmittedByTheNameOfAKeyThatIsValid) {
  EXPECT_EQ((*control_.AdmitJob("user"))->key(), "user");
  for (const char* gone : {"late", "nobody", ""}) {
    EXPECT_EQ(control_.AdmitJob(gone).status().code(), absl::StatusCode::kPermissionDenied);
  }
  EXPECT_EQ(*AccessControl("", metrics_).AdmitJob("user"), nullptr);
}

TEST_F(AccessControlTest, BeforeTheFileIsReadNobodyIsAdmitted) {
  const AccessControl unread(path_, metrics_);
  EXPECT_EQ(unread.Admit("Bearer hk-root", Access::kKey).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, AKeyIsNeededUnlessTheRouteIsOpen) {
  EXPECT_EQ(*control_.Admit(std::nullopt, Access::kOpen), nullptr);
  const auto none = control_.Admit(std::nullopt, Access::kKey).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Message(none), HasSubstr("Authorization: Bearer KEY"));
  for (const char* wrong :
       {"", "Bearer", "Bearer ", "Bearer hk-wrong", "Bearer hk-use", "Bearer hk-user1",
        "Basic hk-user", "hk-user", "Bearer hk-user, Bearer hk-user", "Bearer HK-USER"}) {
    EXPECT_EQ(Admit(wrong).status().code(), absl::StatusCode::kUnauthenticated) << wrong;
  }
  EXPECT_EQ((*Admit("Bearer hk-user"))->key(), "user");
  EXPECT_EQ((*Admit("bearer hk-root"))->key(), "root");
}

TEST_F(AccessControlTest, OnlyAnAdminsKeyOpensWhatIsForThose) {
  EXPECT_EQ(Admit("Bearer hk-user", Access::kAdminKey).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ((*Admit("Bearer hk-root", Access::kAdminKey))->key(), "root");
  EXPECT_EQ(control_.Check(std::nullopt, Access::kAdminKey).code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, AKeyThatHasExpiredIsNone) {
  const absl::Status status = Admit("Bearer hk-late").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Message(status), HasSubstr("expired"));
}

TEST_F(AccessControlTest, ErrorsRepeatNoSecret) {
  EXPECT_THAT(Message(Admit("Bearer hk-wrong").status()), testing::Not(HasSubstr("wrong")));
}

TEST_F(AccessControlTest, ReloadingChangesWhoMayBeginCalls) {
  const auto running = Admit("Bearer hk-user").value();
  Write(Entry("root", "hk-new", ""));
  ASSERT_TRUE(control_.Reload().ok());
  EXPECT_EQ(Admit("Bearer hk-user").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Admit("Bearer hk-root").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(Admit("Bearer hk-new").ok());
  EXPECT_EQ(Admit("Bearer hk-new", Access::kAdminKey).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(running->Reserve(1, 1).ok());
}

TEST_F(AccessControlTest, ABrokenFileLeavesTheKeys) {
  std::ofstream(path_) << "{";
  EXPECT_FALSE(control_.Reload().ok());
  EXPECT_TRUE(Admit("Bearer hk-user").ok());
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_THAT(Message(control_.Reload()), HasSubstr("chmod"));
  EXPECT_TRUE(Admit("Bearer hk-user").ok());
}

TEST_F(AccessControlTest, WhatIsPreparedIsInForceWhenItIsPut) {
  EXPECT_EQ(*control_.Prepare(path_), nullptr);
  Write(Entry("root", "hk-root", ""));
  const auto install = control_.Prepare(path_);
  ASSERT_TRUE(install.ok());
  EXPECT_TRUE(Admit("Bearer hk-user").ok());
  (*install)();
  EXPECT_FALSE(Admit("Bearer hk-user").ok());
  EXPECT_EQ(control_.Prepare("").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(AccessControlTest, WhatLimitsCountSurvivesReloadingAndAbsence) {
  const std::string limited = Entry("user", "hk-user", R"(, "limits": {"calls": 1})");
  Write(limited);
  ASSERT_TRUE(control_.Reload().ok());
  auto running = Admit("Bearer hk-user").value();
  ASSERT_TRUE(control_.Reload().ok());
  EXPECT_EQ(Admit("Bearer hk-user").status().code(), absl::StatusCode::kResourceExhausted);
  Write(Entry("root", "hk-root", ""));
  ASSERT_TRUE(control_.Reload().ok());
  Write(limited);
  ASSERT_TRUE(control_.Reload().ok());
  EXPECT_EQ(Admit("Bearer hk-user").status().code(), absl::StatusCode::kResourceExhausted);
  running.reset();
  EXPECT_TRUE(Admit("Bearer hk-user").ok());
}

}  // namespace
}  // namespace hippodrome::access_control_test
