#include "server/handlers/model_repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "engine/tokenizer/utf8_stream.h"
#include "server/memory_trim.h"

namespace hippodrome {
namespace {

constexpr size_t kMostNameBytes = 128;
// How long a model that nobody holds any more is kept at most.
constexpr std::chrono::milliseconds kReapInterval{20};

// Thrown by the progress of a load: there is no other way out of one.
struct LoadGivenUp : std::exception {};

std::shared_ptr<ServedModel> FindServed(const ModelList& list, const std::string& name) {
  for (const auto& model : *list.all()) {
    if (model->info().name() == name) return model;
  }
  return nullptr;
}

ModelList::Clock::time_point CutAfter(const std::optional<ModelRepository::Duration>& grace) {
  return grace ? ModelList::Clock::now() + *grace : ModelList::Clock::time_point::max();
}

bool Contains(const std::vector<ModelSource>& sources, const std::string& name) {
  return std::any_of(sources.begin(), sources.end(),
                     [&](const ModelSource& source) { return source.name == name; });
}

}  // namespace

absl::Status CheckModelName(const std::string& name) {
  const auto bad = [](char c) { return c == '/' || (c >= 0 && c < ' ') || c == '\x7f'; };
  Utf8Stream characters;
  const std::string text = characters.Append(name);
  const bool utf8 = text == name && characters.Finish().empty();
  if (!name.empty() && name.size() <= kMostNameBytes && utf8 &&
      std::none_of(name.begin(), name.end(), bad)) {
    return absl::OkStatus();
  }
  return FieldError("model", fmt::format("a model's name has 1 to {} bytes of UTF-8, without '/' "
                                         "and control characters",
                                         kMostNameBytes));
}

ModelRepository::ModelRepository(ModelList& list, Metrics& metrics, Functions functions)
    : list_(list), metrics_(metrics), functions_(std::move(functions)) {
  for (const auto& model : *list_.all()) {
    const std::string& name = model->info().name();
    metrics_.SetModelInfo(model->info());
    known_[name].directory = model->origin().directory;
    matched_.push_back({name, model->origin().directory});
  }
  loader_ = std::thread([this] { LoadLoop(); });
  reaper_ = std::thread([this] { ReapLoop(); });
}

ModelRepository::~ModelRepository() {
  Stop();
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  loader_.join();
  reaper_.join();
}

// ---- Commands, on any thread --------------------------------------------------------------------

// REQUIRES: mutex_ is held.
absl::Status ModelRepository::Enter(const std::shared_ptr<Job>& job) {
  ModelSource& source = job->source;
  if (stopped_) return Unavailable("the server is stopping");
  const auto known = known_.find(source.name);
  if (source.directory.empty()) {
    if (known == known_.end() || known->second.directory.empty()) {
      return FieldError("directory",
                        "nothing was loaded as '" + source.name + "' before: say where it lies");
    }
    source.directory = known->second.directory;
  }
  if (known == known_.end() && known_.size() >= kMostNames) {
    return ResourceExhausted(fmt::format(
        "this server has had models of {} names, and keeps metrics of no more", kMostNames));
  }
  if (queue_.size() >= kMostLoads) {
    return ResourceExhausted(fmt::format("{} models wait to be loaded", queue_.size()));
  }
  known_[source.name];
  queue_.push_back(job);
  return absl::OkStatus();
}

void ModelRepository::Load(const ModelSource& source, std::optional<Duration> grace, Done done) {
  const auto job = std::make_shared<Job>();
  job->source = source;
  job->grace = grace;
  job->done = std::move(done);
  absl::Status status = CheckModelName(source.name);
  if (status.ok()) {
    std::lock_guard lock(mutex_);
    status = Enter(job);
  }
  work_.notify_all();
  if (!status.ok()) job->done(status);
}

absl::Status ModelRepository::Unload(const std::string& name, std::optional<Duration> grace) {
  HIPPODROME_RETURN_IF_ERROR(CheckModelName(name));
  {
    std::lock_guard lock(mutex_);
    const bool loading = IsLoading(name);
    if (running_ != nullptr && running_->source.name == name) running_->given_up.store(true);
    for (const auto& job : queue_) {
      if (job->source.name == name) job->given_up.store(true);
    }
    const absl::Status status = list_.Withdraw(name, CutAfter(grace));
    if (!status.ok() && !loading) return status;
    if (status.ok()) metrics_.RemoveModelInfo(name);
    known_[name].reason = "unloaded";
    known_[name].failed = false;
  }
  work_.notify_all();
  functions_.report("unloading model '" + name + "'", false);
  return absl::OkStatus();
}

// REQUIRES: mutex_ is held.
bool ModelRepository::IsLoading(const std::string& name) const {
  const auto is = [&](const std::shared_ptr<Job>& job) {
    return job != nullptr && job->source.name == name && !job->given_up.load();
  };
  return is(running_) || std::any_of(queue_.begin(), queue_.end(), is);
}

std::vector<ModelEntry> ModelRepository::Index() const {
  std::vector<ModelEntry> entries;
  const ModelList::Models leaving = list_.leaving();
  std::lock_guard lock(mutex_);
  for (const auto& [name, known] : known_) {
    ModelEntry entry{.name = name, .reason = known.reason};
    const auto same = [&name = name](const auto& model) { return model->info().name() == name; };
    if (FindServed(list_, name) != nullptr) {
      entry.state = ModelState::kReady;
    } else if (IsLoading(name)) {
      entry = {.name = name, .state = ModelState::kLoading};
    } else if (std::any_of(leaving.begin(), leaving.end(), same)) {
      entry = {.name = name, .state = ModelState::kUnloading};
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

// ---- Lists --------------------------------------------------------------------------------------

// REQUIRES: mutex_ is held.
bool ModelRepository::IsNew(const ModelSource& source) const {
  if (std::find(matched_.begin(), matched_.end(), source) == matched_.end()) return true;
  const std::shared_ptr<ServedModel> served = FindServed(list_, source.name);
  if (served == nullptr) {
    const auto known = known_.find(source.name);
    return known != known_.end() && known->second.failed;
  }
  const ModelOrigin& origin = served->origin();
  return origin.directory == source.directory &&
         origin.fingerprint != FingerprintModel(source.directory);
}

absl::StatusOr<std::function<void()>> ModelRepository::Match(
    const std::vector<ModelSource>& sources) {
  for (const ModelSource& source : sources) {
    HIPPODROME_RETURN_IF_ERROR(CheckModelName(source.name));
  }
  std::vector<ModelSource> loads;
  std::lock_guard lock(mutex_);
  for (const ModelSource& source : sources) {
    if (IsNew(source)) loads.push_back(source);
  }
  if (loads.empty() && sources == matched_) return nullptr;
  return [this, sources, loads] { Apply(sources, loads); };
}

void ModelRepository::Apply(const std::vector<ModelSource>& sources,
                            const std::vector<ModelSource>& loads) {
  std::vector<ModelSource> before;
  {
    std::lock_guard lock(mutex_);
    before = std::exchange(matched_, sources);
  }
  std::vector<std::string> names;
  for (const ModelSource& source : sources) names.push_back(source.name);
  list_.Arrange(std::move(names));
  for (const ModelSource& source : before) {
    if (!Contains(sources, source.name)) Unload(source.name, std::nullopt).IgnoreError();
  }
  for (const ModelSource& source : loads) {
    Load(source, std::nullopt, [](const absl::Status&) {});  // the log says how it ends
  }
}

// ---- The thread that loads ----------------------------------------------------------------------

void ModelRepository::LoadLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    running_ = std::move(queue_.front());
    queue_.pop_front();
    const std::shared_ptr<Job> job = running_;
    lock.unlock();
    Run(*job);
    lock.lock();
  }
}

void ModelRepository::Run(Job& job) {
  const ModelSource& source = job.source;
  functions_.report("loading model '" + source.name + "' from " + source.directory, false);
  const absl::Status status = LoadAndPublish(job);
  {
    std::lock_guard lock(mutex_);
    Known& known = known_[source.name];
    if (status.ok()) known = {.directory = source.directory};
    if (!status.ok() && !job.given_up.load()) {
      known.reason = Message(status);
      known.failed = true;
    }
    running_ = nullptr;
  }
  functions_.report(status.ok() ? "model '" + source.name + "' is loaded"
                                : "model '" + source.name + "' is not loaded: " + Message(status),
                    !status.ok());
  job.done(status);
  // What loading took for a while, or the model that came to nothing.
  TrimMemory();
}

absl::Status ModelRepository::GivenUp(const Job& job) const {
  std::lock_guard lock(mutex_);
  if (stopped_) return Unavailable("the server is stopping");
  return absl::AbortedError("model '" + job.source.name + "' was unloaded while it loaded");
}

absl::StatusOr<ModelParts> ModelRepository::Read(const Job& job) const {
  if (job.given_up.load()) throw LoadGivenUp();
  return functions_.read(job.source, [&](int64_t, int64_t) {
    if (job.given_up.load()) throw LoadGivenUp();
  });
}

absl::Status ModelRepository::LoadAndPublish(Job& job) {
  try {
    HIPPODROME_ASSIGN_OR_RETURN(ModelParts parts, Read(job));
    return Publish(job, functions_.serve(std::move(parts)));
  } catch (const LoadGivenUp&) {
    return GivenUp(job);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("there is no memory for model '" + job.source.name + "'");
  } catch (const std::exception& error) {  // a device's, most likely
    return Internal("model '" + job.source.name + "' could not be loaded: " + error.what());
  }
}

absl::Status ModelRepository::Publish(const Job& job, std::unique_ptr<ServedModel> model) {
  {
    std::lock_guard lock(mutex_);
    if (!job.given_up.load()) {
      metrics_.SetModelInfo(model->info());
      list_.Publish(std::move(model), CutAfter(job.grace));
      work_.notify_all();
      return absl::OkStatus();
    }
  }
  return GivenUp(job);
}

// ---- The thread that destroys -------------------------------------------------------------------

void ModelRepository::ReapLoop() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (list_.leaving().empty()) {
      work_.wait(lock);
    } else {
      work_.wait_for(lock, kReapInterval);
    }
    lock.unlock();
    const std::vector<std::string> names = list_.Reap();
    for (const std::string& name : names)
      functions_.report("a model '" + name + "' has gone", false);
    if (!names.empty()) TrimMemory();
    lock.lock();
  }
}

void ModelRepository::Stop() {
  std::deque<std::shared_ptr<Job>> refused;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    if (running_ != nullptr) running_->given_up.store(true);
    refused.swap(queue_);
  }
  for (const auto& job : refused) job->done(Unavailable("the server is stopping"));
}

}  // namespace hippodrome
