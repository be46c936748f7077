#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "engine/base/status.h"
#include "server/load_model.h"
#include "server/memory_trim.h"
#include "server/server.h"
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

// Must be called before threads start, so that all of them leave the signals to Wait().
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void Wait() {
    int signal = 0;
    sigwait(&set_, &signal);
  }
  // True if one came within 100 ms.
  bool Poll() {
    const timespec wait{0, 100 * 1000 * 1000};
    return sigtimedwait(&set_, nullptr, &wait) > 0;
  }

 private:
  sigset_t set_;
};

absl::StatusOr<std::vector<ModelParts>> LoadModels(const ServeOptions& options) {
  LoadOptions load = options.load;
  load.cpu.pool = MakeThreadPool(load.cpu.threads);
  std::vector<ModelParts> models;
  for (const ModelSource& source : options.models) {
    std::printf("loading %s from %s\n", source.name.c_str(), source.directory.c_str());
    Progress progress("loading " + source.name);
    HIPPODROME_ASSIGN_OR_RETURN(ModelParts parts, LoadModel(source.name, source.directory, load,
                                                            [&](int64_t done, int64_t total) {
                                                              progress.Update(done, total);
                                                            }));
    const std::string why = parts.device_obstacle.empty() ? "" : " (" + parts.device_obstacle + ")";
    std::printf("%s runs on %s%s\n", source.name.c_str(), parts.device.c_str(), why.c_str());
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

absl::Status Serve(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const ServeOptions options, ReadServeOptions(line));
  // Whoever waits for a line reads a pipe or a file, most likely.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Signals signals;
  HIPPODROME_RETURN_IF_ERROR(RaiseFileLimit(options.server));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<ModelParts> models, LoadModels(options));
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                              Server::Start(options.server, std::move(models)));
  const MemoryTrim trim;
  std::printf("http listening on %s\n", server->http_address().c_str());
  std::printf("grpc listening on %s\n", server->grpc_address().c_str());
  if (!server->admin_address().empty()) {
    std::printf("admin listening on %s\n", server->admin_address().c_str());
  }
  for (const std::string& warning : server->Warnings()) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  signals.Wait();
  std::printf("stopping\n");
  const int64_t cut = DrainUntilDone(*server, signals, options.server);
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
