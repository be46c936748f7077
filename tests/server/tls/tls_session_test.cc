#include "server/tls/tls_session.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "tests/testing/certificates.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::tls_session_test {
namespace {

using Outcome = TlsSession::Outcome;

// A client and a server, and what passes between them.
class TlsSessionTest : public testing::Test {
 protected:
  void Connect(const TlsClientOptions& client, const PemFile& client_ca,
               const std::string& host = "localhost") {
    const auto [certificate, key] = authority_.Issue("server");
    server_context_ = NewServerContext({"c", certificate}, {"k", key}, client_ca).value();
    client_context_ = NewClientContext(client).value();
    server_ = std::make_unique<TlsSession>(server_context_);
    client_ = std::make_unique<TlsSession>(client_context_, host);
  }
  void Pass() {
    server_->Feed(std::exchange(client_->output(), ""));
    client_->Feed(std::exchange(server_->output(), ""));
  }
  // What the server makes of a handshake with the client, and then the client.
  std::pair<Outcome, Outcome> ShakeHands() {
    Outcome server = Outcome::kWantsInput;
    Outcome client = Outcome::kWantsInput;
    for (int i = 0; i < 4; ++i) {
      client = client_->Handshake();
      Pass();
      server = server_->Handshake();
      Pass();
    }
    return {server, client};
  }
  TlsClientOptions Client(const TestCertificate& own) {
    return {ca_, directory_.Write("c", own.certificate), directory_.Write("k", own.key)};
  }
  static std::string ReadAll(TlsSession& session, Outcome last) {
    std::string all;
    std::array<char, 1000> piece;
    size_t bytes = 0;
    Outcome outcome = session.Read(piece.data(), piece.size(), bytes);
    for (; outcome == Outcome::kDone; outcome = session.Read(piece.data(), piece.size(), bytes)) {
      all.append(piece.data(), bytes);
    }
    EXPECT_EQ(outcome, last);
    return all;
  }

  const TestAuthority authority_{"authority"};
  const TemporaryDirectory directory_;
  const std::string ca_ = directory_.Write("ca", authority_.certificate());
  TlsContext server_context_, client_context_;
  std::unique_ptr<TlsSession> server_, client_;
};

constexpr std::pair kBoth{Outcome::kDone, Outcome::kDone};

TEST_F(TlsSessionTest, BytesPassBothWaysUntilTheEnd) {
  Connect({.ca = ca_}, {}, "127.0.0.1");
  EXPECT_FALSE(server_->established());
  EXPECT_EQ(ShakeHands(), kBoth);
  EXPECT_TRUE(server_->established());
  const std::string large(100000, 'x');
  EXPECT_TRUE(client_->Write(large));
  EXPECT_TRUE(server_->Write("hello"));
  Pass();
  EXPECT_EQ(ReadAll(*server_, Outcome::kWantsInput), large);
  EXPECT_EQ(ReadAll(*client_, Outcome::kWantsInput), "hello");
  client_->End();
  Pass();
  EXPECT_EQ(ReadAll(*server_, Outcome::kEnd), "");
  // The other side may go on.
  EXPECT_TRUE(server_->Write("more"));
  Pass();
  EXPECT_EQ(ReadAll(*client_, Outcome::kWantsInput), "more");
}

TEST_F(TlsSessionTest, AServerReadsWithoutAHandshakeBefore) {
  Connect({.ca = ca_}, {});
  for (int i = 0; i < 3; ++i) {
    client_->Handshake();
    Pass();
    EXPECT_EQ(ReadAll(*server_, Outcome::kWantsInput), "");
    Pass();
  }
  EXPECT_TRUE(server_->established());
}

TEST_F(TlsSessionTest, TheServersNameMustBeRight) {
  Connect({.ca = ca_}, {}, "example.org");
  EXPECT_EQ(ShakeHands().second, Outcome::kFailed);
  EXPECT_EQ(client_->error(), "certificate verify failed: hostname mismatch");
  Connect({.ca = ca_}, {}, "127.0.0.2");
  EXPECT_EQ(ShakeHands().second, Outcome::kFailed);
  EXPECT_EQ(client_->error(), "certificate verify failed: IP address mismatch");
}

TEST_F(TlsSessionTest, AServerOfAForeignAuthorityIsRefused) {
  const TestAuthority foreign("authority");
  Connect({.ca = directory_.Write("foreign", foreign.certificate())}, {});
  EXPECT_EQ(ShakeHands(), std::pair(Outcome::kFailed, Outcome::kFailed));
  EXPECT_EQ(client_->error().find("certificate verify failed: "), 0u) << client_->error();
}

TEST_F(TlsSessionTest, ClientsNeedACertificateWhereTheyAreAsked) {
  const PemFile ca{"ca", authority_.certificate()};
  Connect(Client(authority_.Issue("client")), ca);
  EXPECT_EQ(ShakeHands(), kBoth);
  Connect({.ca = ca_}, ca);
  EXPECT_EQ(ShakeHands(),
            std::pair(Outcome::kFailed, Outcome::kDone));  // 1.3: told at the next read
  EXPECT_EQ(server_->error(), "peer did not return a certificate");
  ReadAll(*client_, Outcome::kFailed);
  EXPECT_EQ(client_->error(), "tlsv13 alert certificate required");
  Connect(Client(TestAuthority("foreign").Issue("client")), ca);
  EXPECT_EQ(ShakeHands().first, Outcome::kFailed);
  Connect(Client(authority_.Issue("client", std::chrono::hours(-2), std::chrono::hours(-1))), ca);
  EXPECT_EQ(ShakeHands().first, Outcome::kFailed);
  EXPECT_EQ(server_->error(), "certificate verify failed: certificate has expired");
  ReadAll(*client_, Outcome::kFailed);
  EXPECT_EQ(client_->error(), "sslv3 alert certificate expired");
}

TEST_F(TlsSessionTest, WhatIsNoTlsFails) {
  Connect({.ca = ca_}, {});
  server_->Feed("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(ReadAll(*server_, Outcome::kFailed), "");
  EXPECT_EQ(server_->error(), "http request");
  EXPECT_FALSE(server_->established());
  server_->End();
  EXPECT_FALSE(server_->Write("x"));
}

TEST_F(TlsSessionTest, WhatIsChangedOnTheWayFails) {
  Connect({.ca = ca_}, {});
  EXPECT_EQ(ShakeHands(), kBoth);
  EXPECT_TRUE(client_->Write("secret"));
  EXPECT_EQ(client_->output().find("secret"), std::string::npos);
  client_->output().back() ^= 1;
  Pass();
  EXPECT_EQ(ReadAll(*server_, Outcome::kFailed), "");
}

}  // namespace
}  // namespace hippodrome::tls_session_test
