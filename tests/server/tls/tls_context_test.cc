#include "server/tls/tls_context.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/base/status.h"
#include "tests/testing/certificates.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::tls_context_test {
namespace {

using std::chrono::hours;

// What is wrong with these files; "" where nothing is.
std::string Mistake(const std::string& certificates, const std::string& key,
                    const PemFile& client_ca = {}) {
  return Message(NewServerContext({"c.pem", certificates}, {"k.pem", key}, client_ca).status());
}

TEST(TlsContextTest, MistakesInFilesAreNamed) {
  const TestAuthority authority("authority");
  const auto [certificate, key] = authority.Issue("server");
  const auto [other, other_key] = authority.Issue("other");
  EXPECT_EQ(Mistake(certificate, key), "");
  EXPECT_EQ(Mistake(certificate + authority.certificate(), key), "");
  EXPECT_EQ(Mistake("", key), "c.pem: there is no certificate in it, expected PEM");
  EXPECT_EQ(Mistake(key, key), "c.pem: there is no certificate in it, expected PEM");
  EXPECT_EQ(Mistake(certificate, certificate),
            "k.pem: there is no private key in it, expected PEM");
  EXPECT_EQ(Mistake(certificate, other_key),
            "k.pem: the key does not belong to the first certificate in c.pem");
  std::string broken = other;
  broken[broken.size() / 2] = '!';
  EXPECT_EQ(Mistake(certificate + broken, key).find("c.pem: certificate 2 is broken: "), 0u);
  EXPECT_EQ(
      Mistake(certificate, key.substr(0, key.size() - 5)).find("k.pem: the private key is broken"),
      0u);
  EXPECT_EQ(Mistake(certificate, key, {"ca.pem", "no certificates"}),
            "ca.pem: there is no certificate in it, expected PEM");
}

TEST(TlsContextTest, AnEncryptedKeyIsRefused) {
  const auto [certificate, key] = TestAuthority("authority").Issue("server");
  const std::string encrypted =
      "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
      "DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAAAAAAAAAAAAAAAAAAAA==\n"
      "-----END RSA PRIVATE KEY-----\n";
  EXPECT_EQ(Mistake(certificate, encrypted),
            "k.pem: the private key is encrypted, expected one that is not");
}

TEST(TlsContextTest, FilesThatCannotBeReadAreNamed) {
  const TemporaryDirectory directory;
  EXPECT_EQ(
      Message(ReadPemFile("certificate", directory.File("none")).status()),
      "cannot read the certificate " + directory.File("none") + ": No such file or directory");
  EXPECT_EQ(Message(ReadPemFile("certificate", directory.path()).status()),
            "cannot read the certificate " + directory.path() + ": Is a directory");
  EXPECT_EQ(Message(ReadPemFile("private key", directory.Write("empty", "")).status()),
            "cannot read the private key " + directory.File("empty") + ": it is empty");
  EXPECT_EQ(Message(ReadPemFile("private key", "/dev/zero").status()),
            "cannot read the private key /dev/zero: it is larger than 4 MiB");
}

TEST(TlsContextTest, DatesAreThoseOfTheWholeChain) {
  const TestAuthority root("root");  // valid from 48 hours ago for 96
  const TestAuthority between("between", &root);
  const auto now = std::chrono::system_clock::now();
  const auto check = [&](hours from, hours until, hours least, hours most) {
    const auto [certificate, key] = between.Issue("server", from, until);
    const auto context =
        NewServerContext({"c", certificate + between.certificate()}, {"k", key}, {});
    const TlsDates dates = DatesOf(*context);
    const auto margin = std::chrono::minutes(1);
    EXPECT_LT(std::chrono::abs(dates.from - (now + least)), margin);
    EXPECT_LT(std::chrono::abs(dates.until - (now + most)), margin);
  };
  check(hours(-1), hours(2), hours(-1), hours(2));
  check(hours(-100), hours(100), hours(-48), hours(48));
}

TEST(TlsContextTest, ClientsAreGivenFiles) {
  const TestAuthority authority("authority");
  const auto [certificate, key] = authority.Issue("client");
  const TemporaryDirectory directory;
  const std::string ca = directory.Write("ca", authority.certificate());
  EXPECT_TRUE(NewClientContext({}).ok());
  EXPECT_TRUE(NewClientContext({.ca = ca}).ok());
  EXPECT_TRUE(
      NewClientContext({ca, directory.Write("c", certificate), directory.Write("k", key)}).ok());
  EXPECT_FALSE(NewClientContext({.ca = directory.File("none")}).ok());
  EXPECT_FALSE(NewClientContext({ca, directory.File("c"), ca}).ok());
}

}  // namespace
}  // namespace hippodrome::tls_context_test
