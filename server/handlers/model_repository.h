// Loads, replaces and unloads the models of a server while it serves.
#ifndef HIPPODROME_SERVER_HANDLERS_MODEL_REPOSITORY_H_
#define HIPPODROME_SERVER_HANDLERS_MODEL_REPOSITORY_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/handlers/model_list.h"
#include "server/handlers/served_model.h"
#include "server/metrics/metrics.h"
#include "server/options.h"

namespace hippodrome {

// Whether `name` may be that of a model: 1 to 128 bytes of UTF-8 without '/' and control
// characters. kInvalidArgument.
absl::Status CheckModelName(const std::string& name);

enum class ModelState : uint8_t { kReady, kLoading, kUnloading, kUnavailable };

struct ModelEntry {
  std::string name;
  ModelState state = ModelState::kUnavailable;
  std::string reason;  // why the last load failed, or why there is no such model; else empty
};

// Models are loaded one after the other on a thread of its own, beside those that are served, and
// served once they are whole: a load that fails changes nothing. Those that left the list are
// destroyed on another thread, when their last request has gone. It knows kMostNames names in its
// life, whose metrics stay. Thread-safe.
class ModelRepository {
 public:
  using Duration = std::chrono::seconds;
  using Progress = std::function<void(int64_t done, int64_t total)>;

  static constexpr size_t kMostNames = 256;
  static constexpr size_t kMostLoads = 64;  // that wait

  // What it takes to load and serve one; thread-safe.
  struct Functions {
    // Reads a model. May throw; `progress` throws where the load is to be given up.
    std::function<absl::StatusOr<ModelParts>(const ModelSource& source, const Progress& progress)>
        read;
    std::function<std::unique_ptr<ServedModel>(ModelParts parts)> serve;
    // A line for the log; `failed`: a model could not be loaded.
    std::function<void(const std::string& line, bool failed)> report;
  };
  // With how a load ended; on any thread, once.
  using Done = std::function<void(const absl::Status& status)>;

  // Begins with the models of `list`, which, with `metrics`, must outlive it.
  ModelRepository(ModelList& list, Metrics& metrics, Functions functions);
  ~ModelRepository();

  // Loads the model `source.name` from `source.directory`; where that is empty, from where it was
  // loaded last. It takes the place of the one of its name, whose requests go on, for `grace` at
  // most where that is set. `done` may be called before this returns. Errors, by `done`:
  // kInvalidArgument for the name, or where nothing says a directory; those of `read`; kAborted
  // where the model was unloaded meanwhile; kResourceExhausted where memory, names or places to
  // wait run out; kUnavailable when the server is stopping.
  void Load(const ModelSource& source, std::optional<Duration> grace, Done done);
  // From now on there is no model `name`, and what loads one of that name is given up. Requests as
  // above. kNotFound, or kInvalidArgument for the name.
  absl::Status Unload(const std::string& name, std::optional<Duration> grace);
  // All that there were, by name.
  std::vector<ModelEntry> Index() const;

  // Prepares to serve what `sources` say, whose names differ; null where they say nothing new. New
  // are names that were not in the last such list (at first: the models of `list`), or had another
  // directory there; models of it whose files have changed; those whose last load failed; and names
  // that are no longer in it, which will be unloaded. What was changed apart from lists stays.
  // Errors: kInvalidArgument for a name.
  absl::StatusOr<std::function<void()>> Match(const std::vector<ModelSource>& sources);

  // Gives up what loads, with kUnavailable, and loads no more.
  void Stop();

 private:
  struct Job {
    ModelSource source;
    std::optional<Duration> grace;
    Done done;
    std::atomic<bool> given_up = false;
  };
  struct Known {
    std::string directory;  // of the last load that did not fail
    std::string reason;
    bool failed = false;  // the last load
  };

  absl::Status Enter(const std::shared_ptr<Job>& job);
  void LoadLoop();
  void ReapLoop();
  void Run(Job& job);
  absl::StatusOr<ModelParts> Read(const Job& job) const;
  absl::Status LoadAndPublish(Job& job);
  absl::Status Publish(const Job& job, std::unique_ptr<ServedModel> model);
  absl::Status GivenUp(const Job& job) const;
  bool IsLoading(const std::string& name) const;
  bool IsNew(const ModelSource& source) const;
  void Apply(const std::vector<ModelSource>& sources, const std::vector<ModelSource>& loads);

  ModelList& list_;
  Metrics& metrics_;
  const Functions functions_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable work_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::shared_ptr<Job> running_;
  std::map<std::string, Known> known_;
  std::vector<ModelSource> matched_;  // the last list
  bool stopped_ = false;
  bool ending_ = false;

  std::thread loader_;
  std::thread reaper_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_MODEL_REPOSITORY_H_
