// One TLS connection without its socket: bytes in, bytes out.
#ifndef HIPPODROME_SERVER_TLS_TLS_SESSION_H_
#define HIPPODROME_SERVER_TLS_TLS_SESSION_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/tls/tls_context.h"

struct ssl_st;  // OpenSSL's SSL

namespace hippodrome {

// Whoever owns it moves output() to the peer and feeds what the peer sends. For one thread at a
// time. Functions throw std::bad_alloc where memory runs out.
class TlsSession {
 public:
  enum class Outcome { kDone, kWantsInput, kEnd, kFailed };

  // Of a server.
  explicit TlsSession(const TlsContext& context);
  // Of a client that wants to talk to `host`, a name or an address: the server's certificate must
  // be for it.
  TlsSession(const TlsContext& context, const std::string& host);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // What the peer has sent. It is held until it is read.
  void Feed(std::string_view bytes) { input_.append(bytes); }
  // Forgets what was fed and not read.
  void Discard();
  // What the peer is to be sent, in order. Whoever sends some of it removes it.
  std::string& output() { return output_; }

  // kDone once it is known who is there. A client must be done before it writes; for a server,
  // Read() sees to that.
  Outcome Handshake();
  bool established() const;
  // kDone with at least one byte in `data`, up to `size` of them. kEnd: the peer says that it sends
  // no more. After kFailed, output() may have an alert for the peer, and nothing else works.
  Outcome Read(char* data, size_t size, size_t& bytes);
  // REQUIRES: established. False where the session has failed.
  bool Write(std::string_view text);
  // Says that nothing more is sent. Does nothing before it is established.
  void End();

  // Why it failed; "" where it has not.
  const std::string& error() const { return error_; }

 private:
  struct Bio;  // OpenSSL's way to input_ and output_
  Outcome OutcomeOf(int result);

  std::string input_;
  size_t read_ = 0;  // of the input
  std::string output_;
  std::string error_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_TLS_TLS_SESSION_H_
