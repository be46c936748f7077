#include "server/tls/tls_files.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/base/status.h"
#include "tests/testing/certificates.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::tls_files_test {
namespace {

using std::chrono::hours;

class TlsFilesTest : public testing::Test {
 protected:
  void Write(const TestCertificate& identity) {
    directory_.Write("certificate", identity.certificate);
    directory_.Write("key", identity.key);
  }
  static absl::Status Reload(TlsFiles& files) {
    const auto change = files.Prepare();
    if (change.ok() && *change != nullptr) (*change)();
    return change.status();
  }
  std::string Warning(const TlsFiles& files) {
    return files.Warning(std::chrono::system_clock::now());
  }

  const TestAuthority authority_{"authority"};
  const TemporaryDirectory directory_;
  const TlsOptions options_{directory_.File("certificate"), directory_.File("key"),
                            directory_.Write("ca", authority_.certificate())};
};

TEST_F(TlsFilesTest, NewFilesAreInForceAfterAReload) {
  Write(authority_.Issue("old"));
  const auto files = TlsFiles::Open(options_).value();
  const auto old = files->current();
  EXPECT_EQ(old->client_ca, authority_.certificate());
  EXPECT_EQ(Warning(*files), "");
  const TestCertificate renewed = authority_.Issue("new", hours(-1), hours(40));
  Write(renewed);
  EXPECT_EQ(files->current(), old);
  const auto change = files->Prepare().value();
  EXPECT_EQ(files->current(), old);
  change();
  EXPECT_EQ(files->current()->certificates, renewed.certificate);
  EXPECT_EQ(files->current()->key, renewed.key);
  EXPECT_GT(files->current()->expires, old->expires + hours(10));
}

TEST_F(TlsFilesTest, BrokenFilesLeaveTheOldInForce) {
  const TestCertificate good = authority_.Issue("good");
  Write(good);
  const auto files = TlsFiles::Open(options_).value();
  const auto old = files->current();
  const auto refused = [&](const std::string& file) {
    const absl::Status status = Reload(*files);
    EXPECT_NE(Message(status).find(directory_.File(file)), std::string::npos) << status;
    EXPECT_EQ(files->current(), old);
  };
  directory_.Write("key", authority_.Issue("other").key);
  refused("key");
  directory_.Write("key", "");
  refused("key");
  Write(good);
  directory_.Write("ca", "");
  refused("ca");
  directory_.Write("ca", authority_.certificate());
  Write(authority_.Issue("expired", hours(-2), hours(-1)));
  refused("certificate");
  Write(authority_.Issue("early", hours(1), hours(2)));
  refused("certificate");
  Write(good);
  EXPECT_TRUE(Reload(*files).ok());
}

TEST_F(TlsFilesTest, FilesThatAreTheSameChangeNothing) {
  Write(authority_.Issue("expired", hours(-2), hours(-1)));
  const auto files = TlsFiles::Open(options_).value();
  const auto change = files->Prepare();
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(*change, nullptr);
}

TEST_F(TlsFilesTest, AtTheStartDatesAreAWarning) {
  Write(authority_.Issue("expired", hours(-2), hours(-1)));
  EXPECT_NE(Warning(*TlsFiles::Open(options_).value()).find("a certificate expired at 20"),
            std::string::npos);
  Write(authority_.Issue("early", hours(1), hours(2)));
  EXPECT_NE(Warning(*TlsFiles::Open(options_).value()).find("is not valid before 20"),
            std::string::npos);
}

TEST_F(TlsFilesTest, AtTheStartMistakesAreErrors) {
  EXPECT_EQ(Message(TlsFiles::Open(options_).status()), "cannot read the certificate " +
                                                            directory_.File("certificate") +
                                                            ": No such file or directory");
}

}  // namespace
}  // namespace hippodrome::tls_files_test
