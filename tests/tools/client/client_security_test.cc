#include "tools/client/client_security.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/temporary_directory.h"
#include "tools/command_line/text_file.h"

namespace hippodrome::client_security_test {
namespace {

constexpr char kPem[] = "-----BEGIN X-----\n";

class ClientSecurityTest : public testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = directory_.path() + "/" + name;
    EXPECT_TRUE(WriteTextFile(path, text).ok());
    return path;
  }

  static absl::StatusOr<ClientSecurity> Read(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "x");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    const CommandSpec spec{.name = "x", .options = ClientSecurityOptions()};
    const auto line = CommandLine::Parse(static_cast<int>(argv.size()), argv.data(), spec);
    return ReadClientSecurity(line.value());
  }

  TemporaryDirectory directory_;
};

TEST_F(ClientSecurityTest, NothingIsAskedFor) {
  const ClientSecurity security = Read({}).value();
  EXPECT_FALSE(security.tls());
  EXPECT_EQ(security.api_key, "");
}

TEST_F(ClientSecurityTest, ReadsFiles) {
  const auto security =
      Read({"--api-key-file", File("key", "sk-1\r\n"), "--tls-ca", File("ca", kPem),
            "--tls-client-cert", File("cert", kPem), "--tls-client-key", File("pkey", kPem)});
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_EQ(security->api_key, "sk-1");
  EXPECT_TRUE(security->tls());
  EXPECT_EQ(security->private_key, kPem);
}

TEST_F(ClientSecurityTest, RefusesFilesWithoutAKey) {
  for (const char* text : {"", "\n", "two words\n", "two\nlines\n", "\x7f", "caf\xc3\xa9\n"}) {
    const absl::Status status = Read({"--api-key-file", File("key", text)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  }
  // No error tells what is in the file.
  const absl::Status status = Read({"--api-key-file", File("key", "my secret\n")}).status();
  EXPECT_EQ(status.ToString().find("secret"), std::string::npos) << status;
  EXPECT_FALSE(Read({"--api-key-file", "/nowhere"}).ok());
  EXPECT_FALSE(Read({"--tls-ca", File("ca", "no certificate")}).ok());
}

TEST_F(ClientSecurityTest, WhatGoesTogether) {
  const std::string pem = File("pem", kPem);
  EXPECT_TRUE(IsUsage(Read({"--tls-ca", pem, "--tls-client-cert", pem}).status()));
  EXPECT_TRUE(IsUsage(Read({"--tls-ca", pem, "--tls-client-key", pem}).status()));
  EXPECT_TRUE(IsUsage(Read({"--tls-client-cert", pem, "--tls-client-key", pem}).status()));
}

}  // namespace
}  // namespace hippodrome::client_security_test
