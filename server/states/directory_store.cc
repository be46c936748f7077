#include "server/states/directory_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "engine/base/durable_files.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/state/state_file.h"

namespace hippodrome {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOwnerPrefix = "owner-";
constexpr std::string_view kFileSuffix = ".safetensors";
constexpr std::string_view kPartialSuffix = ".tmp";
// A file that is still written may be this old; an older one was left by a process that died.
constexpr int64_t kOldPartialSeconds = 600;

struct StateFileOnDisk {
  fs::path path;
  StoredState state;
  int64_t used = 0;  // nanoseconds since 1970
};

// Of "HANDLE-EXPIRES.safetensors"; nothing for other names.
std::optional<StoredState> ParseFileName(std::string_view name) {
  if (!name.ends_with(kFileSuffix) || name.size() < kStateHandleDigits + 1) return std::nullopt;
  name.remove_suffix(kFileSuffix.size());
  StoredState state{.handle = std::string(name.substr(0, kStateHandleDigits))};
  if (!IsStateHandle(state.handle) || name.size() < kStateHandleDigits + 2 ||
      name[kStateHandleDigits] != '-') {
    return std::nullopt;
  }
  const char* const end = name.data() + name.size();
  const auto [rest, error] =
      std::from_chars(name.data() + kStateHandleDigits + 1, end, state.expires_at);
  if (error != std::errc() || rest != end) return std::nullopt;
  return state;
}

// What a folder has; nothing where it is not there, or may not be read. Throws where there is no
// memory, or no descriptor, to look: what is not seen is not gone. The standard library's iterator
// ends the process instead.
std::vector<fs::path> EntriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
  if (directory == nullptr && errno != ENOENT && errno != ENOTDIR && errno != EACCES) {
    throw std::system_error(errno, std::generic_category(), folder.string());
  }
  while (const dirent* entry = directory != nullptr ? readdir(directory.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back(folder / name);
  }
  return entries;
}

// With size and time; nothing for what is no file of a state, or has just gone.
std::optional<StateFileOnDisk> Look(const fs::path& path) {
  auto state = ParseFileName(path.filename().string());
  struct stat info;
  if (!state || lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  state->bytes = info.st_size;
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return StateFileOnDisk{path, *std::move(state),
                         info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec};
}

void RemoveOldPartial(const fs::path& path, int64_t now) {
  struct stat info;
  if (!path.filename().string().ends_with(kPartialSuffix)) return;
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (info.st_mtim.tv_sec + kOldPartialSeconds < now) unlink(path.c_str());
}

class DirectoryStore final : public StateStore {
 public:
  DirectoryStore(std::string directory, int64_t most_bytes, StateStoreMetrics& metrics, Clock clock)
      : StateStore(metrics),
        directory_(std::move(directory)),
        most_bytes_(most_bytes),
        clock_(std::move(clock)) {}

  // Lets go of what has expired or has no room beside `bytes` more.
  void MakeRoom(int64_t bytes) {
    std::vector<StateFileOnDisk> files = Scan();
    int64_t held = 0;
    for (const StateFileOnDisk& file : files) held += file.state.bytes;
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
      return std::pair(a.used, a.path) < std::pair(b.used, b.path);
    });
    auto oldest = files.begin();
    for (; held + bytes > most_bytes_ && oldest != files.end(); ++oldest) {
      held -= oldest->state.bytes;
      unlink(oldest->path.c_str());
    }
    metrics().Evicted(oldest - files.begin());
    metrics().SetUse(files.end() - oldest + (bytes > 0 ? 1 : 0), held + bytes);
  }

  bool shared() const override { return true; }

 private:
  absl::StatusOr<StoredState> DoPut(const std::string& owner, const std::string& handle,
                                    const StateBytes& file, std::chrono::seconds lives) override {
    const int64_t bytes = std::ssize(*file);
    HIPPODROME_RETURN_IF_ERROR(CheckFits(bytes, most_bytes_));
    const std::lock_guard lock(mutex_);
    const int64_t expires_at = clock_() + lives.count();
    const fs::path folder = FolderOf(owner);
    const fs::path path = folder / fmt::format("{}-{}{}", handle, expires_at, kFileSuffix);
    absl::Status status = MakeDirectories(folder.string());
    if (status.ok()) {
      chmod(folder.c_str(), S_IRWXU);  // states hold what people wrote
      MakeRoom(bytes);
      status = Write(path, *file);
    }
    if (!status.ok()) return Unavailable("the store of states: " + Message(status));
    for (const StateFileOnDisk& other : FilesOf(folder, handle)) {
      if (other.path != path) unlink(other.path.c_str());
    }
    return StoredState{handle, bytes, expires_at};
  }

  absl::StatusOr<StateBytes> DoGet(const std::string& owner, const std::string& handle) override {
    const auto found = Find(owner, handle);
    if (!found || found->state.bytes > most_bytes_) return NoSuchState();
    auto bytes = ReadSmallFile(found->path.string(), static_cast<size_t>(most_bytes_));
    if (absl::IsNotFound(bytes.status())) return NoSuchState();  // it has just gone
    if (!bytes.ok()) return Unavailable("the store of states: " + Message(bytes.status()));
    const absl::Status whole = SummarizeStateFile(*bytes).status();
    if (!whole.ok()) {
      metrics().Damaged();
      return NoSuchState();
    }
    utimensat(AT_FDCWD, found->path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    return std::make_shared<const std::string>(*std::move(bytes));
  }

  absl::Status DoRemove(const std::string& owner, const std::string& handle) override {
    const std::lock_guard lock(mutex_);
    if (!Find(owner, handle)) return NoSuchState();
    for (const StateFileOnDisk& file : FilesOf(FolderOf(owner), handle)) {
      unlink(file.path.c_str());
    }
    MakeRoom(0);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<StoredState>> DoList(const std::string& owner) override {
    const int64_t now = clock_();
    std::vector<StoredState> states;
    for (const fs::path& path : EntriesOf(FolderOf(owner))) {
      const auto file = Look(path);
      if (file && file->state.expires_at > now) states.push_back(file->state);
    }
    return states;
  }

  fs::path FolderOf(const std::string& owner) const {
    return directory_ / (std::string(kOwnerPrefix) + absl::BytesToHexString(owner));
  }

  static std::vector<StateFileOnDisk> FilesOf(const fs::path& folder, const std::string& handle) {
    std::vector<StateFileOnDisk> files;
    for (const fs::path& path : EntriesOf(folder)) {
      if (!path.filename().string().starts_with(handle)) continue;
      if (auto file = Look(path)) files.push_back(*std::move(file));
    }
    return files;
  }

  // Of several, which a process leaves that dies while it replaces one, the newest.
  std::optional<StateFileOnDisk> Find(const std::string& owner, const std::string& handle) const {
    const int64_t now = clock_();
    std::optional<StateFileOnDisk> newest;
    for (StateFileOnDisk& file : FilesOf(FolderOf(owner), handle)) {
      if (file.state.expires_at <= now) continue;
      if (!newest || newest->used < file.used) newest = std::move(file);
    }
    return newest;
  }

  absl::Status Write(const fs::path& path, const std::string& bytes) {
    // Two processes, or two threads, never write one file.
    const fs::path partial =
        path.parent_path() / fmt::format("{}-{}{}", getpid(), ++written_, kPartialSuffix);
    const absl::Cleanup remove = [&] { unlink(partial.c_str()); };  // unless it has another name
    HIPPODROME_RETURN_IF_ERROR(WriteSynced(partial.string(), bytes));
    return RenameDurably(partial.string(), path.string());
  }

  // All that has not expired. Removes what has, and what processes left that died.
  std::vector<StateFileOnDisk> Scan() const {
    const int64_t now = clock_();
    std::vector<StateFileOnDisk> files;
    for (const fs::path& folder : EntriesOf(directory_)) {
      if (!folder.filename().string().starts_with(kOwnerPrefix)) continue;
      for (const fs::path& path : EntriesOf(folder)) {
        RemoveOldPartial(path, now);
        auto file = Look(path);
        if (!file) continue;
        if (file->state.expires_at > now) {
          files.push_back(*std::move(file));
        } else {
          unlink(path.c_str());
        }
      }
    }
    return files;
  }

  const fs::path directory_;
  const int64_t most_bytes_;
  const Clock clock_;
  std::mutex mutex_;  // of what changes files, in this process
  int64_t written_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StateStore>> OpenDirectoryStore(const std::string& directory,
                                                               int64_t most_bytes,
                                                               StateStoreMetrics& metrics,
                                                               StateStore::Clock clock) {
  HIPPODROME_RETURN_IF_ERROR(MakeDirectories(directory));
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    return Internal(directory + ": " + std::generic_category().message(errno));
  }
  auto store = std::make_unique<DirectoryStore>(directory, most_bytes, metrics, std::move(clock));
  store->MakeRoom(0);
  return store;
}

}  // namespace hippodrome
