// Certificates for tests, made when they run.
#ifndef HIPPODROME_TESTS_TESTING_CERTIFICATES_H_
#define HIPPODROME_TESTS_TESTING_CERTIFICATES_H_

#include <chrono>
#include <memory>
#include <string>

#include "server/tls/tls_files.h"

struct evp_pkey_st;
struct x509_st;

namespace hippodrome {

// In PEM.
struct TestCertificate {
  std::string certificate;
  std::string key;
};

// Signs certificates for 127.0.0.1 and localhost.
class TestAuthority {
 public:
  // Signed by itself, or by `parent`.
  explicit TestAuthority(const std::string& name, const TestAuthority* parent = nullptr);

  const std::string& certificate() const { return pem_; }
  // Valid from `from` to `until`, counted from now.
  TestCertificate Issue(const std::string& name, std::chrono::hours from = std::chrono::hours(-1),
                        std::chrono::hours until = std::chrono::hours(24)) const;

 private:
  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  std::string pem_;
};

// A server's files, and a client that trusts them.
struct TlsPeers {
  std::shared_ptr<const TlsFiles> server;
  TlsContext client;
};
TlsPeers NewTlsPeers();

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_CERTIFICATES_H_
