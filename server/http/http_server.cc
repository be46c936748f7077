#include "server/http/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "server/address.h"
#include "server/http/http_connection.h"

namespace hippodrome {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

namespace {

constexpr std::chrono::milliseconds kPoll{5};
// Time for closed connections to unwind.
constexpr std::chrono::seconds kUnwind{2};

void WaitUntilZero(const std::atomic<int>& count, std::chrono::milliseconds grace) {
  const auto end = std::chrono::steady_clock::now() + grace;
  while (count > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPoll);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, HttpHandler handler)
      : acceptor_(net::make_strand(io_)), pause_(acceptor_.get_executor()) {
    shared_.options = options;
    shared_.handler = std::move(handler);
  }

  absl::Status Listen();
  void Serve();
  void Stop(std::chrono::milliseconds grace);
  const std::string& address() const { return address_; }

 private:
  net::awaitable<void> Accept();
  void Admit(tcp::socket socket);
  void CloseAll();

  HttpShared shared_;
  net::io_context io_;
  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  std::string address_;
  std::mutex mutex_;  // guards connections_
  std::list<std::weak_ptr<HttpConnection>> connections_;
  std::vector<std::thread> threads_;
};

absl::Status HttpServer::Impl::Listen() {
  const std::string& text = shared_.options.address;
  HIPPODROME_ASSIGN_OR_RETURN(const HostPort where, ParseAddress(text));
  error_code error;
  const auto resolved = tcp::resolver(io_).resolve(where.host, std::to_string(where.port),
                                                   tcp::resolver::passive, error);
  if (error) return InvalidArgument("HTTP address " + text + ": " + error.message());
  const tcp::endpoint endpoint = *resolved.begin();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
  if (error) return Unavailable("cannot listen on HTTP address " + text + ": " + error.message());
  address_ = ToText({where.host, acceptor_.local_endpoint().port()});
  return absl::OkStatus();
}

void HttpServer::Impl::Serve() {
  net::co_spawn(acceptor_.get_executor(), Accept(), net::detached);
  for (int i = 0; i < shared_.options.threads; ++i) threads_.emplace_back([this] { io_.run(); });
}

net::awaitable<void> HttpServer::Impl::Accept() {
  constexpr auto kResult = net::as_tuple(net::use_awaitable);
  while (!shared_.stopping) {
    auto [error, socket] = co_await acceptor_.async_accept(net::make_strand(io_), kResult);
    if (!error) {
      Admit(std::move(socket));
      continue;
    }
    // Out of file descriptors, most likely: trying again at once would spin.
    pause_.expires_after(std::chrono::milliseconds(50));
    co_await pause_.async_wait(kResult);
  }
}

void HttpServer::Impl::Admit(tcp::socket socket) {
  if (shared_.connections >= shared_.options.max_connections) return;  // closes the socket
  auto connection = std::make_shared<HttpConnection>(shared_, std::move(socket));
  {
    std::lock_guard lock(mutex_);
    std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
    connections_.push_back(connection);
  }
  HttpConnection& c = *connection;
  net::co_spawn(c.executor(), c.Run(), [connection = std::move(connection)](const auto&) {});
}

void HttpServer::Impl::CloseAll() {
  std::lock_guard lock(mutex_);
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (connection == nullptr) continue;
    net::post(connection->executor(), [connection] { connection->Close(); });
  }
}

void HttpServer::Impl::Stop(std::chrono::milliseconds grace) {
  if (threads_.empty()) return;
  shared_.stopping = true;
  net::post(acceptor_.get_executor(), [this] {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  });
  WaitUntilZero(shared_.busy, grace);
  CloseAll();
  WaitUntilZero(shared_.connections, kUnwind);
  shared_.slow.join();
  io_.stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              HttpHandler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  HIPPODROME_RETURN_IF_ERROR(impl->Listen());
  impl->Serve();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { Stop(std::chrono::milliseconds(0)); }

const std::string& HttpServer::address() const { return impl_->address(); }

void HttpServer::Stop(std::chrono::milliseconds grace) { impl_->Stop(grace); }

}  // namespace hippodrome
