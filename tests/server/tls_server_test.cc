// The whole server behind TLS: all listeners, clients with certificates, and new files while it
// serves.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "hippodrome/v1/generation.grpc.pb.h"
#include "hippodrome/v1/models.grpc.pb.h"
#include "server/server.h"
#include "tests/testing/certificates.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::tls_server_test {
namespace {

using std::chrono::hours;

class TlsServerTest : public testing::Test {
 protected:
  void WriteServer(const TestCertificate& own) {
    directory_.Write("certificate", own.certificate);
    directory_.Write("key", own.key);
  }
  void Start(bool ask_clients) {
    ServerOptions& options = options_;
    options.http.address = "127.0.0.1:0";
    options.grpc.address = "127.0.0.1:0";
    options.admin_address = "127.0.0.1:0";
    options.tls = {directory_.File("certificate"), directory_.File("key"), ""};
    if (ask_clients) options.tls.client_ca = directory_.Write("ca", authority_.certificate());
    options.models = {{"m", ""}};
    std::vector<ModelParts> models;
    models.push_back(NewFakeModel("m", {}, &engine_));
    server_ = Server::Start(options, std::move(models)).value();
  }

  // A client that trusts `ca` and shows `own`, if that is not empty.
  TlsContext HttpTls(const std::string& ca, const TestCertificate& own = {}) {
    TlsClientOptions options{.ca = directory_.Write("trusted", ca)};
    if (!own.key.empty()) {
      options.certificate = directory_.Write("own", own.certificate);
      options.key = directory_.Write("own_key", own.key);
    }
    return NewClientContext(options).value();
  }
  // "200", or why TLS failed; "closed" where no reason was given.
  std::string Http(const std::string& address, const TlsContext& tls) {
    HttpClient client(address, tls);
    const int status = client.Get("/ready").status;
    if (status != 0) return std::to_string(status);
    return client.TlsError().empty() ? "closed" : client.TlsError();
  }

  // With a connection of its own.
  std::shared_ptr<grpc::Channel> Channel(const std::string& ca, const TestCertificate& own = {}) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        server_->grpc_address(), grpc::SslCredentials({ca, own.key, own.certificate}), arguments);
  }
  grpc::StatusCode Grpc(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    v1::ListModelsResponse response;
    return v1::Models::NewStub(channel)->List(&context, {}, &response).error_code();
  }

  const TestAuthority authority_{"authority"};
  const TemporaryDirectory directory_;
  ServerOptions options_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<Server> server_;
};

TEST_F(TlsServerTest, AllListenersTakeTlsOnly) {
  WriteServer(authority_.Issue("server"));
  Start(false);
  const TlsContext tls = HttpTls(authority_.certificate());
  EXPECT_EQ(Http(server_->http_address(), tls), "200");
  EXPECT_EQ(Http(server_->admin_address(), tls), "200");
  EXPECT_EQ(Grpc(Channel(authority_.certificate())), grpc::OK);
  EXPECT_EQ(Http(server_->http_address(), nullptr), "closed");
  EXPECT_EQ(Http(server_->admin_address(), nullptr), "closed");
  EXPECT_EQ(Grpc(grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials())),
            grpc::UNAVAILABLE);
  const TestAuthority foreign("authority");
  EXPECT_NE(Http(server_->http_address(), HttpTls(foreign.certificate())), "200");
  EXPECT_EQ(Grpc(Channel(foreign.certificate())), grpc::UNAVAILABLE);
  EXPECT_EQ(Http(server_->http_address(), tls), "200");
}

TEST_F(TlsServerTest, ClientsWithoutAGoodCertificateAreRefused) {
  WriteServer(authority_.Issue("server"));
  Start(true);
  const std::string& ca = authority_.certificate();
  const auto outcome = [&](const TestCertificate& own) {
    const std::string http = Http(server_->http_address(), HttpTls(ca, own));
    EXPECT_EQ(Http(server_->admin_address(), HttpTls(ca, own)), http);
    EXPECT_EQ(Grpc(Channel(ca, own)), http == "200" ? grpc::OK : grpc::UNAVAILABLE);
    return http;
  };
  EXPECT_EQ(outcome(authority_.Issue("client")), "200");
  EXPECT_EQ(outcome({}), "tlsv13 alert certificate required");
  EXPECT_EQ(outcome(authority_.Issue("client", hours(-2), hours(-1))),
            "sslv3 alert certificate expired");
  EXPECT_EQ(outcome(TestAuthority("foreign").Issue("client")), "tlsv1 alert unknown ca");
}

TEST_F(TlsServerTest, ListenersThatOthersReachAreWarnedOfWithoutTlsOrKeys) {
  options_.http.address = "0.0.0.0:0";
  options_.grpc.address = "127.0.0.1:0";
  options_.admin_address = "0.0.0.0:0";
  const auto open = Server::Start(options_, {});
  ASSERT_TRUE(open.ok()) << open.status();
  const std::vector<std::string> warnings = (*open)->Warnings();
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0].find("the HTTP listener at 0.0.0.0:"), 0u) << warnings[0];
  EXPECT_EQ(warnings[1].find("the admin listener at 0.0.0.0:"), 0u) << warnings[1];
  WriteServer(authority_.Issue("server"));
  options_.tls = {directory_.File("certificate"), directory_.File("key"), ""};
  const std::vector<std::string> keyless = Server::Start(options_, {}).value()->Warnings();
  ASSERT_EQ(keyless.size(), 2u);
  EXPECT_EQ(keyless[0].find("TLS"), std::string::npos);
  EXPECT_NE(keyless[0].find("--api-keys"), std::string::npos);
  options_.api_keys =
      directory_.Write("keys", R"({"keys": [{"name": "k", "secrets": [{"sha256": ")" +
                                   std::string(64, '5') + R"("}]}]})");
  ASSERT_EQ(chmod(options_.api_keys.c_str(), 0600), 0);
  EXPECT_TRUE(Server::Start(options_, {}).value()->Warnings().empty());
}

TEST_F(TlsServerTest, ACertificateThatHasExpiredIsServedAndSaid) {
  WriteServer(authority_.Issue("server", hours(-2), hours(-1)));
  Start(false);
  ASSERT_EQ(server_->Warnings().size(), 1u);
  EXPECT_NE(server_->Warnings()[0].find("expired at"), std::string::npos);
  EXPECT_EQ(Http(server_->http_address(), HttpTls(authority_.certificate())),
            "certificate verify failed: certificate has expired");
  EXPECT_EQ(Grpc(Channel(authority_.certificate())), grpc::UNAVAILABLE);
}

// Of the server and of clients; what runs goes on.
TEST_F(TlsServerTest, NewFilesCountForNewConnectionsAtOnce) {
  WriteServer(authority_.Issue("server"));
  Start(true);
  const TestCertificate client = authority_.Issue("client");
  const std::string& ca = authority_.certificate();
  engine_->hold_decode = true;
  HttpClient http(server_->http_address(), HttpTls(ca, client));
  http.SendRequest("POST", "/v1/completions",
                   R"({"prompt": "abc", "max_tokens": 5, "stream": true})");
  const auto channel = Channel(ca, client);
  const auto stub = v1::Generation::NewStub(channel);
  grpc::ClientContext context;
  v1::GenerateRequest request;
  request.set_text("abc");
  request.set_max_tokens(5);
  const auto reader = stub->Generate(&context, request);
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 2; }));

  for (int i = 0; i < 3; ++i) {
    const TestAuthority next("next");
    const TestCertificate next_client = next.Issue("client");
    WriteServer(next.Issue("server"));
    directory_.Write("ca", next.certificate());
    EXPECT_EQ(server_->Reload(options_).value(), std::vector<std::string>{"certificates"});
    for (const std::string& address : {server_->http_address(), server_->admin_address()}) {
      EXPECT_EQ(Http(address, HttpTls(next.certificate(), next_client)), "200");
      EXPECT_NE(Http(address, HttpTls(ca, next_client)), "200");             // the old server
      EXPECT_NE(Http(address, HttpTls(next.certificate(), client)), "200");  // the old client
    }
    EXPECT_EQ(Grpc(Channel(next.certificate(), next_client)), grpc::OK);
    EXPECT_EQ(Grpc(Channel(ca, next_client)), grpc::UNAVAILABLE);
    EXPECT_EQ(Grpc(Channel(next.certificate(), client)), grpc::UNAVAILABLE);
    EXPECT_EQ(Grpc(channel), grpc::OK);  // on its old connection
  }

  engine_->hold_decode = false;
  EXPECT_TRUE(http.Read().body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(http.Get("/ready").status, 200);
  std::string text;
  for (v1::GenerateResponse response; reader->Read(&response);) text += response.text();
  EXPECT_EQ(text, "abcab");
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(TlsServerTest, BrokenFilesLeaveTheOldInForce) {
  WriteServer(authority_.Issue("server"));
  Start(false);
  const std::string& ca = authority_.certificate();
  directory_.Write("key", authority_.Issue("other").key);
  EXPECT_EQ(Message(server_->Reload(options_).status()),
            "certificates: " + directory_.File("key") +
                ": the key does not belong to the first certificate in " +
                directory_.File("certificate"));
  EXPECT_EQ(Http(server_->http_address(), HttpTls(ca)), "200");
  EXPECT_EQ(Grpc(Channel(ca)), grpc::OK);
}

TEST_F(TlsServerTest, WhoFailsTheHandshakeLeavesNothingBehind) {
  WriteServer(authority_.Issue("server"));
  Start(true);
  const TlsContext good = HttpTls(authority_.certificate(), authority_.Issue("client"));
  const auto value = [&](const std::string& series) {
    HttpClient client(server_->admin_address(), good);
    const std::string text = client.Get("/metrics").body;
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + series.size() + 2);
  };
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(Http(server_->http_address(), HttpTls(authority_.certificate())), "200");
    EXPECT_EQ(Http(server_->grpc_address(), nullptr), "closed");
    EXPECT_EQ(Grpc(Channel(authority_.certificate())), grpc::UNAVAILABLE);
  }
  EXPECT_TRUE(WaitUntil([&] {
    return value("hippodrome_http_connections{listener=\"main\"}") == 0 &&
           value("hippodrome_grpc_connections") == 0;
  }));
  EXPECT_EQ(value("hippodrome_http_tls_handshakes_failed_total{listener=\"main\"}"), 20);
}

}  // namespace
}  // namespace hippodrome::tls_server_test
