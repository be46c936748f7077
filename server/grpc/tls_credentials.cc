#include "server/grpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>

namespace hippodrome {
namespace {

// The C interface asks for certificates with each handshake. The C++ one of this version has only
// files that gRPC itself looks at every few seconds.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(std::shared_ptr<const TlsFiles> files) : files_(std::move(files)) {
    const bool ask = !files_->current()->client_ca.empty();
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            ask ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            Fetch, this));
  }
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  // Calls are told apart by what they say, not here.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    auto& credentials = *static_cast<TlsCredentials*>(self);
    std::shared_ptr<const TlsIdentity> identity = credentials.files_->current();
    if (identity == credentials.given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair own{identity->key.c_str(), identity->certificates.c_str()};
    // It must be given authorities, also where it does not ask clients for certificates.
    const bool ask = !identity->client_ca.empty();
    const std::string& authorities = ask ? identity->client_ca : identity->certificates;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &own, 1);
    credentials.given_ = std::move(identity);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<const TlsFiles> files_;
  std::shared_ptr<const TlsIdentity> given_;
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> NewTlsCredentials(std::shared_ptr<const TlsFiles> files) {
  return std::make_shared<TlsCredentials>(std::move(files));
}

}  // namespace hippodrome
