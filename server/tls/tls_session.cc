#include "server/tls/tls_session.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>

namespace hippodrome {
namespace {

// Of HTTP/1.1, as ALPN has it.
constexpr std::array<unsigned char, 9> kProtocol = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

bool IsAddress(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

struct TlsSession::Bio {
  static TlsSession& SessionOf(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int Read(BIO* bio, char* data, size_t size, size_t* bytes) {
    TlsSession& session = SessionOf(bio);
    BIO_clear_retry_flags(bio);
    *bytes = std::min(size, session.input_.size() - session.read_);
    if (*bytes == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(data, session.input_.data() + session.read_, *bytes);
    session.read_ += *bytes;
    return 1;
  }

  // Exceptions must not pass through OpenSSL.
  static int Write(BIO* bio, const char* data, size_t size, size_t* bytes) {
    BIO_clear_retry_flags(bio);
    try {
      SessionOf(bio).output_.append(data, size);
    } catch (const std::exception&) {
      return 0;
    }
    *bytes = size;
    return 1;
  }

  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static int Create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }

  static BIO_METHOD* Method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tls session");
      if (made == nullptr) throw std::bad_alloc();
      BIO_meth_set_read_ex(made, Read);
      BIO_meth_set_write_ex(made, Write);
      BIO_meth_set_ctrl(made, Control);
      BIO_meth_set_create(made, Create);
      return made;
    }();
    return method;
  }
};

TlsSession::TlsSession(const TlsContext& context) : ssl_(SSL_new(context.get()), SSL_free) {
  BIO* bio = ssl_ == nullptr ? nullptr : BIO_new(Bio::Method());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
}

TlsSession::TlsSession(const TlsContext& context, const std::string& host) : TlsSession(context) {
  SSL_set_connect_state(ssl_.get());
  SSL_set_alpn_protos(ssl_.get(), kProtocol.data(), kProtocol.size());
  if (IsAddress(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str());
  } else {
    SSL_set1_host(ssl_.get(), host.c_str());
    SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
  }
}

TlsSession::~TlsSession() = default;

void TlsSession::Discard() {
  input_ = std::string();
  read_ = 0;
}

bool TlsSession::established() const { return SSL_is_init_finished(ssl_.get()) == 1; }

TlsSession::Outcome TlsSession::Handshake() {
  ERR_clear_error();
  return OutcomeOf(SSL_do_handshake(ssl_.get()));
}

TlsSession::Outcome TlsSession::Read(char* data, size_t size, size_t& bytes) {
  bytes = 0;
  ERR_clear_error();
  return OutcomeOf(SSL_read_ex(ssl_.get(), data, size, &bytes));
}

bool TlsSession::Write(std::string_view text) {
  if (text.empty()) return error_.empty();
  size_t bytes = 0;
  ERR_clear_error();
  return OutcomeOf(SSL_write_ex(ssl_.get(), text.data(), text.size(), &bytes)) == Outcome::kDone;
}

void TlsSession::End() {
  if (!established() || !error_.empty()) return;
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

TlsSession::Outcome TlsSession::OutcomeOf(int result) {
  if (read_ == input_.size()) Discard();
  if (!error_.empty()) return Outcome::kFailed;
  if (result == 1) return Outcome::kDone;
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return Outcome::kWantsInput;
  if (error == SSL_ERROR_ZERO_RETURN) return Outcome::kEnd;
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  error_ = reason == nullptr ? "the TLS session is broken" : reason;
  const long verified = SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) {
    error_ += std::string(": ") + X509_verify_cert_error_string(verified);
  }
  ERR_clear_error();
  return Outcome::kFailed;
}

}  // namespace hippodrome
