#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/status.h"
#include "server/load_model.h"
#include "server/log/log.h"
#include "server/memory_trim.h"
#include "server/server.h"
#include "server/version.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/commands/commands.h"
#include "tools/commands/serve_options.h"

namespace hippodrome {
namespace {

// Raises the limit of descriptors as far as may be. Connections take them: HTTP's one each, gRPC's
// two.
absl::Status RaiseFileLimit(const ServerOptions& options) {
  constexpr int64_t kOthers = 256;  // listeners, models, metrics, the libraries' own
  const int64_t needed = options.http.max_connections + 2 * options.grpc.max_connections + kOthers;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max == RLIM_INFINITY || static_cast<int64_t>(limit.rlim_max) >= needed) {
    return absl::OkStatus();
  }
  return FailedPrecondition("the connections that are allowed need " + std::to_string(needed) +
                            " file descriptors, and this process may have " +
                            std::to_string(limit.rlim_max) +
                            ": raise the limit (ulimit -Hn) or lower --http-max-connections and "
                            "--grpc-max-connections");
}

// Must be made before threads start, so that all of them leave the signals to it.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  // The next one.
  int Wait() {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }
  // True if one that ends the server came within 100 ms.
  bool Poll() {
    const timespec wait{0, 100 * 1000 * 1000};
    const int signal = sigtimedwait(&set_, nullptr, &wait);
    return signal == SIGTERM || signal == SIGINT;
  }

 private:
  sigset_t set_;
};

absl::StatusOr<std::vector<ModelParts>> LoadModels(const ServeOptions& options,
                                                   const LoadOptions& load) {
  std::vector<ModelParts> models;
  for (const ModelSource& source : options.server.models) {
    std::printf("loading %s from %s\n", source.name.c_str(), source.directory.c_str());
    Progress progress("loading " + source.name);
    const auto begin = std::chrono::steady_clock::now();
    HIPPODROME_ASSIGN_OR_RETURN(ModelParts parts, LoadModel(source.name, source.directory, load,
                                                            [&](int64_t done, int64_t total) {
                                                              progress.Update(done, total);
                                                            }));
    const std::string why = parts.device_obstacle.empty() ? "" : " (" + parts.device_obstacle + ")";
    std::printf("%s runs on %s%s\n", source.name.c_str(), parts.device.c_str(), why.c_str());
    if (parts.info.attention_window() > 0) {
      std::printf("%s sees the last %lld tokens or a few more: an approximation of the model\n",
                  source.name.c_str(), static_cast<long long>(parts.info.attention_window()));
    }
    const bool decodes = std::holds_alternative<DecoderParts>(parts.family);
    const std::string h3_state = decodes ? WeightsName(load.generator.h3_state) : "";
    if (h3_state == "bf16") {
      std::printf("%s keeps the states of its H3 layers in bf16\n", source.name.c_str());
    }
    Log(LogLine(LogLevel::kInfo, "model_loaded")
            .Text("model", source.name)
            .Text("device", parts.device)
            .Text("obstacle", parts.device_obstacle)
            .Integer("attention_window", parts.info.attention_window())
            .Text("h3_state", h3_state)
            .Seconds("duration_s", std::chrono::steady_clock::now() - begin));
    models.push_back(std::move(parts));
  }
  return models;
}

// Returns how many requests were cut.
int64_t DrainUntilDone(Server& server, Signals& signals, const ServerOptions& options) {
  std::atomic<bool> done = false;
  int64_t cut = 0;
  std::thread drain([&] {
    cut = server.Drain(options.drain_delay, options.grace);
    done.store(true);
  });
  while (!done.load()) {
    if (signals.Poll()) server.EndGracePeriod();
  }
  drain.join();
  return cut;
}

// Options that a running server takes anew.
constexpr std::string_view kReloaded[] = {"access-log", "api-keys", "log-level", "model"};

// What changed in the file and needs another start of the server.
std::string NeedRestart(const CommandLine& old, const CommandLine& now) {
  std::string names;
  for (const std::string& name : old.Differences(now)) {
    if (std::find(std::begin(kReloaded), std::end(kReloaded), name) != std::end(kReloaded))
      continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

absl::Status TryReload(const CommandLine& line, CommandLine& current, Server& server) {
  HIPPODROME_ASSIGN_OR_RETURN(CommandLine now, line.WithConfigFile());
  HIPPODROME_ASSIGN_OR_RETURN(const ServeOptions options, ReadServeOptions(now));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<std::string> changed,
                              server.Reload(options.server));
  Log(LogLine(LogLevel::kInfo, "reload").Text("what", absl::StrJoin(changed, ", ")));
  const std::string rest = NeedRestart(current, now);
  if (!rest.empty()) {
    Log(LogLine(LogLevel::kWarning, "restart_needed")
            .Text("message", "changed, but for the next start only: " + rest));
  }
  current = std::move(now);
  return absl::OkStatus();
}

// Until a signal ends the server. `line` is the command line alone, `current` with what its file
// said last.
void ServeUntilStopped(const CommandLine& line, CommandLine current, Signals& signals,
                       Server& server) {
  while (signals.Wait() == SIGHUP) {
    const absl::Status status = TryReload(line, current, server);
    if (!status.ok()) {
      Log(LogLine(LogLevel::kError, "reload_failed")
              .Text("message", "nothing is reloaded: " + Message(status)));
    }
  }
}

absl::Status Serve(const CommandLine& line) {
  if (line.Has("version")) {
    std::fputs(VersionText().c_str(), stdout);
    return absl::OkStatus();
  }
  HIPPODROME_ASSIGN_OR_RETURN(const CommandLine whole, line.WithConfigFile());
  HIPPODROME_ASSIGN_OR_RETURN(const ServeOptions options, ReadServeOptions(whole));
  LoadOptions load = options.load;
  HIPPODROME_ASSIGN_OR_RETURN(load.cpu, whole.PlaceThreads());
  // Whoever waits for a line reads a pipe or a file, most likely.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Signals signals;
  HIPPODROME_ASSIGN_OR_RETURN(const std::function<void()> open_logs, OpenLogs(options.server.log));
  open_logs();
  const absl::Cleanup close_logs = CloseLogs;
  Log(LogLine(LogLevel::kInfo, "starting")
          .Text("version", Version())
          .Text("git", Build().git)
          .Text("cpu_isa", Build().cpu_isa));
  HIPPODROME_RETURN_IF_ERROR(RaiseFileLimit(options.server));
  load.cpu.pool = MakeThreadPool(load.cpu);
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<ModelParts> models, LoadModels(options, load));
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                              Server::Start(options.server, std::move(models), load));
  const MemoryTrim trim;
  std::printf("http listening on %s\n", server->http_address().c_str());
  std::printf("grpc listening on %s\n", server->grpc_address().c_str());
  if (!server->admin_address().empty()) {
    std::printf("admin listening on %s\n", server->admin_address().c_str());
  }
  for (const std::string& warning : server->Warnings()) {
    Log(LogLine(LogLevel::kWarning, "warning").Text("message", warning));
  }
  server->Add({"logs", [](const ServerOptions& now) { return OpenLogs(now.log); }});
  ServeUntilStopped(line, whole, signals, *server);
  std::printf("stopping\n");
  Log(LogLine(LogLevel::kInfo, "stopping"));
  const int64_t cut = DrainUntilDone(*server, signals, options.server);
  Log(LogLine(LogLevel::kInfo, "stopped").Integer("requests_cut", cut));
  if (cut == 0) return absl::OkStatus();
  return Unavailable(
      std::to_string(cut) + " requests were still running when the grace period of " +
      std::to_string(options.server.grace.count()) + " seconds was over, and were cut");
}

}  // namespace

int ServeCommand(int argc, char** argv) {
  // Debian's Abseil is built with the detector on; it slows every lock inside gRPC.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return RunCommand(argc, argv, kServeSpec, Serve);
}

}  // namespace hippodrome
