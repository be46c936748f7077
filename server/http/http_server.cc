#include "server/http/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <future>
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

// Strands share 193 mutexes, each allocated when the first strand chooses it; where that fails for
// want of memory, Boost 1.81 crashes as it unwinds. After so many strands all mutexes are there.
void AllocateMutexesOfStrands(net::io_context& io) {
  constexpr int kStrands = 8192;
  for (int i = 0; i < kStrands; ++i) net::make_strand(io);
}

void WaitUntilZero(const std::atomic<int>& count, std::chrono::milliseconds grace) {
  const auto end = std::chrono::steady_clock::now() + grace;
  while (count > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPoll);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, HttpHandler handler, Metrics* metrics,
       std::shared_ptr<const TlsFiles> tls, HttpGate gate)
      : own_metrics_(metrics == nullptr ? std::make_unique<Metrics>() : nullptr),
        shared_(options, std::move(gate), std::move(handler),
                metrics == nullptr ? *own_metrics_ : *metrics),
        tls_(std::move(tls)),
        acceptor_(net::make_strand(io_)),
        pause_(acceptor_.get_executor()) {}

  absl::Status Listen();
  void Serve();
  void Stop(std::chrono::milliseconds grace);
  const std::string& address() const { return address_; }

 private:
  net::awaitable<void> Accept(int turn);
  net::awaitable<void> AcceptOne(int turn);
  void AcceptAnew();
  void Run();
  void Admit(tcp::socket socket);

  const std::unique_ptr<Metrics> own_metrics_;  // where nobody asked for them
  HttpShared shared_;
  const std::shared_ptr<const TlsFiles> tls_;  // null: plain TCP
  net::io_context io_;
  // Where accepting fails for want of memory, threads must not leave before it begins anew.
  const net::executor_work_guard<net::io_context::executor_type> stay_{io_.get_executor()};
  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  int turn_ = 0;  // of the Accept() that goes on; of its strand
  std::string address_;
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
  AllocateMutexesOfStrands(io_);
  AcceptAnew();
  for (int i = 0; i < shared_.options.threads; ++i) threads_.emplace_back([this] { Run(); });
}

// What throws, for want of memory most likely, takes the coroutine along that it was about: a
// connection, or that which accepts.
void HttpServer::Impl::Run() {
  bool lost = false;
  for (bool done = false; !done;) {
    try {
      if (lost) AcceptAnew();
      lost = false;
      io_.run();
      done = true;
    } catch (const std::exception&) {
      lost = true;
    }
  }
}

// In place of the one that goes on, if any does.
void HttpServer::Impl::AcceptAnew() {
  net::post(acceptor_.get_executor(), [this] {
    if (shared_.stopping) return;
    error_code ignored;
    acceptor_.cancel(ignored);
    pause_.cancel();
    net::co_spawn(acceptor_.get_executor(), Accept(++turn_), net::detached);
  });
}

net::awaitable<void> HttpServer::Impl::Accept(int turn) {
  while (!shared_.stopping && turn == turn_) {
    try {
      co_await AcceptOne(turn);
    } catch (const std::exception&) {
      // One client less.
    }
  }
}

net::awaitable<void> HttpServer::Impl::AcceptOne(int turn) {
  constexpr auto kResult = net::as_tuple(net::use_awaitable);
  auto [error, socket] = co_await acceptor_.async_accept(net::make_strand(io_), kResult);
  if (!error) {
    Admit(std::move(socket));
    co_return;
  }
  if (turn != turn_) co_return;
  // Out of file descriptors, most likely. One that was given up is free in a moment; where there
  // was none, trying again at once would spin.
  const bool evicted = shared_.table.Evict();
  if (evicted) shared_.metrics.Evicted();
  pause_.expires_after(std::chrono::milliseconds(evicted ? 1 : 50));
  co_await pause_.async_wait(kResult);
}

void HttpServer::Impl::Admit(tcp::socket socket) {
  std::unique_ptr<TlsSession> tls;
  if (tls_ != nullptr) tls = std::make_unique<TlsSession>(tls_->current()->http);
  const auto connection =
      std::make_shared<HttpConnection>(shared_, std::move(socket), std::move(tls));
  auto close = [weak = std::weak_ptr(connection)] {
    const auto found = weak.lock();
    if (found != nullptr) net::post(found->executor(), [found] { found->Close(); });
  };
  ConnectionTable::Admission admission =
      shared_.table.Admit(connection->client(), std::move(close));
  if (admission.evicted) shared_.metrics.Evicted();
  if (admission.place != nullptr) {
    net::co_spawn(connection->executor(), connection->Run(std::move(admission.place)),
                  [connection](const auto&) {});
  } else if (admission.address_full) {
    shared_.metrics.RefusedAddress();
  } else {
    shared_.metrics.RefusedFull();
  }
}

void HttpServer::Impl::Stop(std::chrono::milliseconds grace) {
  if (threads_.empty()) return;
  shared_.stopping = true;
  std::promise<void> closed;  // else the last clients would connect, and wait in vain
  net::post(acceptor_.get_executor(), [&] {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    closed.set_value();
  });
  closed.get_future().wait();
  WaitUntilZero(shared_.busy, grace);
  shared_.table.CloseAll();
  WaitUntilZero(shared_.connections, kUnwind);
  shared_.large.Stop();
  io_.stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              HttpHandler handler, Metrics* metrics,
                                                              std::shared_ptr<const TlsFiles> tls,
                                                              HttpGate gate) {
  auto impl =
      std::make_unique<Impl>(options, std::move(handler), metrics, std::move(tls), std::move(gate));
  HIPPODROME_RETURN_IF_ERROR(impl->Listen());
  impl->Serve();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { Stop(std::chrono::milliseconds(0)); }

const std::string& HttpServer::address() const { return impl_->address(); }

void HttpServer::Stop(std::chrono::milliseconds grace) { impl_->Stop(grace); }

}  // namespace hippodrome
