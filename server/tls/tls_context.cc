#include "server/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr size_t kMaxPemBytes = size_t{4} << 20;  // all authorities of a system take 0.2 MiB
// Of TLS 1.2; those of 1.3 are good as they come.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

struct FreePem {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Certificate = std::unique_ptr<X509, FreePem>;
using Key = std::unique_ptr<EVP_PKEY, FreePem>;

absl::Status Wrong(const PemFile& file, const std::string& what) {
  return InvalidArgument(file.path + ": " + what);
}

// Why OpenSSL refused, in its words.
std::string Reason() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

std::unique_ptr<BIO, FreePem> Open(const PemFile& file) {
  std::unique_ptr<BIO, FreePem> bio(
      BIO_new_mem_buf(file.text.data(), static_cast<int>(file.text.size())));
  if (bio == nullptr) throw std::bad_alloc();
  return bio;
}

// At least one.
absl::StatusOr<std::vector<Certificate>> ReadCertificates(const PemFile& file) {
  const auto bio = Open(file);
  std::vector<Certificate> certificates;
  ERR_clear_error();
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
  }
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = Reason();
  if (!ended) {
    return Wrong(
        file, "certificate " + std::to_string(certificates.size() + 1) + " is broken: " + reason);
  }
  if (certificates.empty()) return Wrong(file, "there is no certificate in it, expected PEM");
  return certificates;
}

// Asked for where a key is encrypted.
int NoPassword(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return 0;
}

absl::StatusOr<Key> ReadKey(const PemFile& file) {
  const auto bio = Open(file);
  bool encrypted = false;
  ERR_clear_error();
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, &encrypted));
  const bool none = file.text.find("PRIVATE KEY-----") == std::string::npos;
  const std::string reason = Reason();
  if (encrypted) return Wrong(file, "the private key is encrypted, expected one that is not");
  if (key == nullptr && none) return Wrong(file, "there is no private key in it, expected PEM");
  if (key == nullptr) return Wrong(file, "the private key is broken: " + reason);
  return key;
}

// The certificate, those behind it, and the key.
absl::Status UseIdentity(SSL_CTX* context, const PemFile& certificates, const PemFile& key) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<Certificate> chain, ReadCertificates(certificates));
  HIPPODROME_ASSIGN_OR_RETURN(const Key own, ReadKey(key));
  if (X509_check_private_key(chain.front().get(), own.get()) != 1) {
    ERR_clear_error();
    return Wrong(key, "the key does not belong to the first certificate in " + certificates.path);
  }
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) {
    return Wrong(certificates, "the certificate cannot be used: " + Reason());
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) {
      return Wrong(certificates,
                   "certificate " + std::to_string(i + 1) + " cannot be used: " + Reason());
    }
  }
  if (SSL_CTX_use_PrivateKey(context, own.get()) != 1) {
    return Wrong(key, "the private key cannot be used: " + Reason());
  }
  return absl::OkStatus();
}

absl::Status Trust(SSL_CTX* context, const PemFile& authorities) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<Certificate> all, ReadCertificates(authorities));
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const Certificate& authority : all) {
    if (X509_STORE_add_cert(store, authority.get()) != 1) {
      return Wrong(authorities, "a certificate cannot be used: " + Reason());
    }
  }
  return absl::OkStatus();
}

absl::Status AskClients(SSL_CTX* context, const PemFile& client_ca) {
  HIPPODROME_RETURN_IF_ERROR(Trust(context, client_ca));
  // Tells clients which of their certificates to show.
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<Certificate> all, ReadCertificates(client_ca));
  for (const Certificate& authority : all) SSL_CTX_add_client_CA(context, authority.get());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return absl::OkStatus();
}

// Refuses a client that offers other protocols only; one that offers none speaks HTTP/1.1.
int SelectProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1\x08http/1.0";
  unsigned char* found = nullptr;
  const int result =
      SSL_select_next_proto(&found, size, kOurs, sizeof(kOurs) - 1, offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// What is resumed is not verified again: a client would go on with a certificate that has expired.
// Connections are kept for long, so handshakes are few.
TlsContext NewContext(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method), SSL_CTX_free);
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context.get(), kCiphers);
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  // Thousands of connections may be idle. What is shown is what is in the file, not what is found
  // among the authorities of clients.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  return context;
}

std::chrono::system_clock::time_point ToTime(const ASN1_TIME* time) {
  std::tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

}  // namespace

absl::StatusOr<PemFile> ReadPemFile(const std::string& what, const std::string& path) {
  const auto wrong = [&](const std::string& why) {
    return InvalidArgument("cannot read the " + what + " " + path + ": " + why);
  };
  const std::unique_ptr<std::FILE, FreePem> file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return wrong(std::strerror(errno));
  PemFile pem{path, std::string(kMaxPemBytes + 1, '\0')};
  pem.text.resize(std::fread(pem.text.data(), 1, pem.text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return wrong(std::strerror(errno));
  if (pem.text.size() > kMaxPemBytes) return wrong("it is larger than 4 MiB");
  if (pem.text.empty()) return wrong("it is empty");
  pem.text.shrink_to_fit();
  return pem;
}

absl::StatusOr<TlsContext> NewServerContext(const PemFile& certificates, const PemFile& key,
                                            const PemFile& client_ca) {
  TlsContext context = NewContext(TLS_server_method());
  HIPPODROME_RETURN_IF_ERROR(UseIdentity(context.get(), certificates, key));
  if (!client_ca.path.empty()) HIPPODROME_RETURN_IF_ERROR(AskClients(context.get(), client_ca));
  SSL_CTX_set_alpn_select_cb(context.get(), SelectProtocol, nullptr);
  return context;
}

absl::StatusOr<TlsContext> NewClientContext(const TlsClientOptions& options) {
  TlsContext context = NewContext(TLS_client_method());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (options.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else {
    HIPPODROME_ASSIGN_OR_RETURN(const PemFile ca, ReadPemFile("certificates", options.ca));
    HIPPODROME_RETURN_IF_ERROR(Trust(context.get(), ca));
  }
  if (options.certificate.empty()) return context;
  HIPPODROME_ASSIGN_OR_RETURN(const PemFile own, ReadPemFile("certificate", options.certificate));
  HIPPODROME_ASSIGN_OR_RETURN(const PemFile key, ReadPemFile("private key", options.key));
  HIPPODROME_RETURN_IF_ERROR(UseIdentity(context.get(), own, key));
  return context;
}

TlsDates DatesOf(const TlsContext& context) {
  const X509* own = SSL_CTX_get0_certificate(context.get());
  TlsDates dates{ToTime(X509_get0_notBefore(own)), ToTime(X509_get0_notAfter(own))};
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context.get(), &chain);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    const X509* other = sk_X509_value(chain, i);
    dates.from = std::max(dates.from, ToTime(X509_get0_notBefore(other)));
    dates.until = std::min(dates.until, ToTime(X509_get0_notAfter(other)));
  }
  return dates;
}

}  // namespace hippodrome
