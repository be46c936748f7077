#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/client/client_connection.h"
#include "tools/client/client_security.h"
#include "tools/command_line/command_line.h"
#include "tools/commands/commands.h"
#include "tools/top/terminal.h"
#include "tools/top/top_figures.h"
#include "tools/top/top_screen.h"
#include "tools/top/top_state.h"

namespace hippodrome {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using boost::system::error_code;

// A snapshot is as long as it has to be.
constexpr int kSnapshotRows = 10000;
constexpr int kSnapshotColumns = 200;

CommandSpec TopSpec() {
  CommandSpec spec{
      .name = "top",
      .summary = "Shows what a running server does.",
      .usage = {"[--http HOST:PORT] [OPTION]..."},
      .description =
          "Throughput, latencies, queue, states, connections and failures, as /metrics tells them: "
          "of "
          "HTTP's address, or of that of `serve --admin`, which answers beside any load. Keys: q "
          "quits, p pauses, r shows totals since the server began, and rates again.",
      .options = {{"http", "HOST:PORT", "where the server listens", "127.0.0.1:8080"},
                  {"interval", "S", "seconds between readings", "1"},
                  {"once", "", "print one snapshot, of two readings, and end"},
                  {"json", "", "print an object for each reading instead, a line each"}}};
  for (Option& option : ClientSecurityOptions()) spec.options.push_back(std::move(option));
  return spec;
}

std::string TimeOfDay() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

// Reads /metrics again and again, and shows what it says.
class Top {
 public:
  Top(asio::io_context& context, const std::shared_ptr<HttpEndpoint>& endpoint,
      const std::string& address, Clock::duration interval)
      : context_(context),
        connection_(std::make_shared<ClientConnection>(context.get_executor(), endpoint)),
        state_(address),
        interval_(interval),
        timer_(context) {}

  // On the terminal, until a key or a signal ends it.
  absl::Status Watch() {
    HIPPODROME_ASSIGN_OR_RETURN(Terminal terminal, Terminal::Open());
    terminal_ = &terminal;
    // Its own descriptor: this one is closed with it.
    asio::posix::stream_descriptor keys(context_, ::dup(terminal.descriptor()));
    asio::signal_set signals(context_, SIGINT, SIGTERM, SIGHUP);
    signals.add(SIGWINCH);
    signals.add(SIGTSTP);
    terminal.Show();
    asio::co_spawn(context_, ReadAgainAndAgain(), asio::detached);
    asio::co_spawn(context_, TakeKeys(keys), asio::detached);
    asio::co_spawn(context_, TakeSignals(signals), asio::detached);
    context_.run();
    return absl::OkStatus();
  }

  // Two readings, the figures between which are `frame()`'s.
  absl::Status ReadTwice() {
    absl::Status status;
    asio::co_spawn(context_, Twice(status), asio::detached);
    context_.run();
    return status;
  }

  // Prints an object for each reading but the first, `once` or until there is none.
  absl::Status PrintJson(bool once) {
    do {
      context_.restart();
      HIPPODROME_RETURN_IF_ERROR(ReadTwice());
      std::printf("%s\n", ToJson(state_.frame().figures).dump().c_str());
      if (std::fflush(stdout) != 0) return Unavailable("nobody takes the output");
    } while (!once);
    return absl::OkStatus();
  }

  const TopFrame& frame() const { return state_.frame(); }

 private:
  asio::awaitable<absl::Status> Read() {
    const absl::StatusOr<std::string> text = co_await connection_->Get("/metrics");
    state_.Add(text, Clock::now(), TimeOfDay());
    read_ = true;
    co_return text.status();
  }

  asio::awaitable<void> Wait(Clock::time_point until) {
    error_code ignored;
    timer_.expires_at(until);
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  asio::awaitable<void> ReadAgainAndAgain() {
    for (Clock::time_point next = Clock::now();;) {
      const absl::Status said_on_screen = co_await Read();
      Draw();
      next = std::max(next + interval_, Clock::now());
      co_await Wait(next);
    }
  }

  asio::awaitable<void> Twice(absl::Status& status) {
    if (!read_) {
      absl::Status first = co_await Read();
      status = std::move(first);
      if (!status.ok()) co_return;
    }
    co_await Wait(Clock::now() + interval_);
    absl::Status second = co_await Read();
    status = std::move(second);
    if (status.ok() && !frame().problem.empty()) status = FailedPrecondition(frame().problem);
  }

  asio::awaitable<void> TakeKeys(asio::posix::stream_descriptor& keys) {
    std::array<char, 16> typed{};
    for (;;) {
      error_code error;
      const size_t size = co_await keys.async_read_some(
          asio::buffer(typed), asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
      for (size_t i = 0; i < size; ++i) OnKey(typed[i]);
      Draw();
    }
    context_.stop();
  }

  void OnKey(char key) {
    switch (key) {
      case 'q':
      case 'Q':
        context_.stop();
        break;
      case 'p':
        state_.TogglePause();
        break;
      case 'r':
        state_.ToggleTotals();
        break;
      default:
        break;
    }
  }

  asio::awaitable<void> TakeSignals(asio::signal_set& signals) {
    for (;;) {
      error_code error;
      const int signal =
          co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
      if (error || (signal != SIGWINCH && signal != SIGTSTP)) break;
      if (signal == SIGTSTP) {
        terminal_->Restore();
        ::kill(::getpid(), SIGSTOP);
        terminal_->Show();  // it goes on
      }
      Draw();
    }
    context_.stop();
  }

  void Draw() { terminal_->Draw(Render(state_.frame(), terminal_->Style())); }

  asio::io_context& context_;
  const std::shared_ptr<ClientConnection> connection_;
  TopState state_;
  const Clock::duration interval_;
  asio::steady_timer timer_;
  Terminal* terminal_ = nullptr;
  bool read_ = false;
};

absl::Status ShowServer(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const ClientSecurity security, ReadClientSecurity(line));
  const std::string address = line.Text("http");
  const auto endpoint = HttpEndpoint::Make(address, security);
  if (!endpoint.ok()) return Usage("--http: " + Message(endpoint.status()));
  HIPPODROME_ASSIGN_OR_RETURN(const double interval, line.Number("interval", 0.1, 3600));
  asio::io_context context(1);
  Top top(context, *endpoint, address,
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval)));
  if (line.Has("json")) return top.PrintJson(line.Has("once"));
  if (!line.Has("once")) return top.Watch();
  HIPPODROME_RETURN_IF_ERROR(top.ReadTwice());
  const ScreenStyle plain{.columns = kSnapshotColumns,
                          .rows = kSnapshotRows,
                          .color = false,
                          .unicode = false,
                          .keys = false};
  for (const std::string& text : Render(top.frame(), plain)) std::printf("%s\n", text.c_str());
  return absl::OkStatus();
}

}  // namespace

int TopCommand(int argc, char** argv) { return RunCommand(argc, argv, TopSpec(), ShowServer); }

}  // namespace hippodrome
