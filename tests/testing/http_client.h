// A small HTTP client on a plain socket, for tests of our own server.
#ifndef HIPPODROME_TESTS_TESTING_HTTP_CLIENT_H_
#define HIPPODROME_TESTS_TESTING_HTTP_CLIENT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "server/tls/tls_session.h"

namespace hippodrome {

struct HttpAnswer {
  int status = 0;                              // 0: the connection broke
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
};

// One connection. Not thread-safe.
class HttpClient {
 public:
  // `address`: HOST:PORT with a numeric host. `tls`: for TLS, which begins with the first byte that
  // is sent or awaited; null: plain TCP.
  explicit HttpClient(const std::string& address, const TlsContext& tls = nullptr);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void Send(const std::string& bytes);
  void SendRequest(const std::string& method, const std::string& path, const std::string& body);
  // Reads one answer. `on_chunk` sees each chunk as it comes and may return false to stop.
  HttpAnswer Read(const std::function<bool(const std::string&)>& on_chunk = {});
  // Reads up to a line's end, which it leaves out. False where the connection has ended.
  bool ReadLine(std::string& line);
  HttpAnswer Get(const std::string& path);
  HttpAnswer Post(const std::string& path, const std::string& body);
  // True when the server has closed the connection; waits for bytes or the end.
  bool Closed();
  // Why TLS failed; "" where it has not.
  std::string TlsError() const { return tls_ == nullptr ? "" : tls_->error(); }
  void Close();
  // Ends this side only.
  void HalfClose();
  // As Close(), but the server gets a reset instead of an end.
  void Reset();

 private:
  bool Fill();
  void SendBytes(const std::string& bytes);
  // Adds what comes to the buffer, or to what TLS reads. False at the end.
  bool Receive();
  bool ShakeHands();
  bool FillFromTls();
  bool ReadBytes(size_t count, std::string& bytes);
  bool ReadChunks(HttpAnswer& answer, const std::function<bool(const std::string&)>& on_chunk);

  int socket_ = -1;
  std::unique_ptr<TlsSession> tls_;
  std::string buffer_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_HTTP_CLIENT_H_
