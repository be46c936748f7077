#include "server/batches/batch_store.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "engine/base/durable_files.h"
#include "engine/base/field_error.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "server/log/log.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFilePrefix = "file-";
constexpr std::string_view kBatchPrefix = "batch_";
constexpr std::string_view kOutputSuffix = "-output";
constexpr std::string_view kErrorSuffix = "-errors";
constexpr std::string_view kPartSuffix = ".tmp";
constexpr std::string_view kJsonSuffix = ".json";
constexpr size_t kMostJsonBytes = size_t{1} << 20;
// What a file takes beside its content: its JSON, and the rest of two blocks.
constexpr int64_t kFileOverhead = 8192;

// "file-" and 32 digits, or with "-output" or "-errors" behind them.
bool IsFileId(std::string_view name) {
  if (!name.starts_with(kFilePrefix)) return false;
  name.remove_prefix(kFilePrefix.size());
  if (name.ends_with(kOutputSuffix)) name.remove_suffix(kOutputSuffix.size());
  if (name.ends_with(kErrorSuffix)) name.remove_suffix(kErrorSuffix.size());
  return IsStateHandle(name);
}

bool IsBatchId(std::string_view name) {
  return name.starts_with(kBatchPrefix) && IsStateHandle(name.substr(kBatchPrefix.size()));
}

std::string ResultFileId(const std::string& batch, std::string_view suffix) {
  return std::string(kFilePrefix) + batch.substr(kBatchPrefix.size()) + std::string(suffix);
}

std::optional<int64_t> SizeOf(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info.st_size;
}

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return Internal(folder + ": " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

void Warn(const std::string& path, const std::string& message) {
  Log(LogLine(LogLevel::kWarning, "batch_store").Text("path", path).Text("message", message));
}

absl::Status NoSuch(const char* what, const std::string& id) {
  return NotFound(fmt::format("there is no {} '{}'", what, id.substr(0, 64)));
}

absl::Status Unwritten(const absl::Status& status) {
  return status.ok() ? status : Unavailable("the store of batches: " + Message(status));
}

// Those of the map that belong to `owner`, in the order of their numbers.
template <typename Object>
std::vector<Object> Owned(const std::map<std::string, Object>& objects, const std::string& owner) {
  std::vector<Object> owned;
  for (const auto& [id, object] : objects) {
    if (object.owner == owner) owned.push_back(object);
  }
  std::sort(owned.begin(), owned.end(),
            [](const Object& a, const Object& b) { return a.number < b.number; });
  return owned;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchStore>> BatchStore::Open(const BatchStoreOptions& options,
                                                             BatchMetrics& metrics, Clock clock) {
  for (const char* folder : {"", "/files", "/batches"}) {
    const std::string path = options.directory + folder;
    HIPPODROME_RETURN_IF_ERROR(MakeDirectories(path));
    chmod(path.c_str(), S_IRWXU);  // they hold what people wrote
  }
  absl::StatusOr<std::unique_ptr<AppendFile>> lock = AppendFile::Open(options.directory + "/lock");
  if (absl::IsFailedPrecondition(lock.status())) {
    return FailedPrecondition(options.directory +
                              ": another server keeps its batches there, and a directory is for "
                              "one");
  }
  if (!lock.ok()) return lock.status();
  auto store = std::unique_ptr<BatchStore>(
      new BatchStore(options, metrics, std::move(clock), *std::move(lock)));
  HIPPODROME_RETURN_IF_ERROR(store->Load());
  return store;
}

BatchStore::BatchStore(const BatchStoreOptions& options, BatchMetrics& metrics, Clock clock,
                       std::unique_ptr<AppendFile> lock)
    : options_(options),
      files_folder_(options.directory + "/files"),
      batches_folder_(options.directory + "/batches"),
      metrics_(metrics),
      clock_(std::move(clock)),
      lock_(std::move(lock)) {}

// ---- What is there already

absl::Status BatchStore::Load() {
  const std::lock_guard lock(mutex_);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<std::string> batches, NamesIn(batches_folder_));
  for (const std::string& name : batches) LoadBatch(name);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<std::string> files, NamesIn(files_folder_));
  for (const std::string& name : files) LoadFile(name);
  RemoveLeftOvers();
  Show();
  return absl::OkStatus();
}

void BatchStore::LoadBatch(const std::string& name) {
  const std::string path = batches_folder_ + "/" + name;
  const std::string id = name.substr(0, name.find('.'));
  if (!IsBatchId(id)) return Warn(path, "is nothing of a batch");
  if (name.ends_with(kPartSuffix)) {
    unlink(path.c_str());
  } else if (name == id + std::string(kJsonSuffix)) {
    const absl::StatusOr<std::string> text = ReadSmallFile(path, kMostJsonBytes);
    const absl::StatusOr<Batch> batch = text.ok() ? ReadStoredBatch(*text) : text.status();
    if (!batch.ok()) return Warn(path, Message(batch.status()));
    if (batch->id != id) return Warn(path, "is of another batch: " + batch->id);
    last_number_ = std::max(last_number_, batch->number);
    batches_.emplace(id, *batch);
    bytes_ += kFileOverhead;
  } else {
    bytes_ += SizeOf(path).value_or(0);  // what grows while a batch runs
  }
}

void BatchStore::LoadFile(const std::string& name) {
  const std::string path = files_folder_ + "/" + name;
  const std::string id = name.substr(0, name.find('.'));
  if (!IsFileId(id)) return Warn(path, "is nothing of a file");
  if (name == id) {
    if (!SizeOf(FileJsonPath(id))) Warn(path, "nothing says what it is");
    return;
  }
  if (name != id + std::string(kJsonSuffix)) {
    unlink(path.c_str());  // a part of one, left by a server that was killed
    return;
  }
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMostJsonBytes);
  const absl::StatusOr<StoredFile> file = text.ok() ? ReadStoredFile(*text) : text.status();
  if (!file.ok()) return Warn(path, Message(file.status()));
  const std::optional<int64_t> size = SizeOf(FilePath(id));
  if (!size) {
    unlink(path.c_str());  // the content comes last
    return;
  }
  if (file->id != id || file->bytes != *size) return Warn(path, "does not tell of the file");
  last_number_ = std::max(last_number_, file->number);
  files_.emplace(id, *file);
  bytes_ += *size + kFileOverhead;
}

// Files that grow belong to a batch that has not ended.
void BatchStore::RemoveLeftOvers() {
  for (const auto& [id, batch] : batches_) {
    if (!IsFinal(batch.status)) continue;
    for (const std::string& path : {OutputPath(id), ErrorPath(id)}) {
      const std::optional<int64_t> size = SizeOf(path);
      if (size && unlink(path.c_str()) == 0) bytes_ -= *size;
    }
  }
}

// ---- Files

absl::Status BatchStore::CheckRoom(const std::string& owner, int64_t bytes) const {
  if (bytes_ + bytes + kFileOverhead > options_.directory_bytes) {
    return WithHttpStatus(
        ResourceExhausted(fmt::format("the server keeps {} bytes of files and batches, and {} at "
                                      "most: delete files that nobody needs",
                                      bytes_, options_.directory_bytes)),
        507);
  }
  const auto own = std::count_if(files_.begin(), files_.end(),
                                 [&](const auto& entry) { return entry.second.owner == owner; });
  if (own < kMostFiles) return absl::OkStatus();
  return ResourceExhausted(
      fmt::format("there are {} files, as many as may be: delete some", kMostFiles));
}

absl::StatusOr<StoredFile> BatchStore::AddFile(const std::string& owner, const std::string& name,
                                               std::string_view content) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string digits, NewStateHandle());
  StoredFile file{.id = std::string(kFilePrefix) + digits,
                  .owner = owner,
                  .name = name,
                  .purpose = "batch",
                  .bytes = std::ssize(content),
                  .created_at = clock_()};
  const int64_t taken = file.bytes + kFileOverhead;
  {
    const std::lock_guard lock(mutex_);
    HIPPODROME_RETURN_IF_ERROR(CheckRoom(owner, file.bytes));
    file.number = ++last_number_;
    Take(taken);
  }
  const std::string path = FilePath(file.id);
  const std::string part = path + std::string(kPartSuffix);
  absl::Cleanup give_up = [&] {
    for (const std::string& written : {part, path, FileJsonPath(file.id)}) unlink(written.c_str());
    const std::lock_guard lock(mutex_);
    Take(-taken);
  };
  HIPPODROME_RETURN_IF_ERROR(Unwritten(WriteSynced(part, content)));
  HIPPODROME_RETURN_IF_ERROR(
      Unwritten(WriteFileDurably(FileJsonPath(file.id), WriteStoredFile(file))));
  HIPPODROME_RETURN_IF_ERROR(Unwritten(RenameDurably(part, path)));
  const std::lock_guard lock(mutex_);
  files_.emplace(file.id, file);
  std::move(give_up).Cancel();
  return file;
}

absl::StatusOr<StoredFile> BatchStore::FindFile(const std::string& owner,
                                                const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end() || found->second.owner != owner) return NoSuch("file", id);
  return found->second;
}

std::vector<StoredFile> BatchStore::Files(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  return Owned(files_, owner);
}

absl::Status BatchStore::RemoveFile(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end() || found->second.owner != owner) return NoSuch("file", id);
  for (const auto& [name, batch] : batches_) {
    if (batch.input_file != id || IsFinal(batch.status)) continue;
    return FailedPrecondition("the batch '" + name + "' reads this file, and has not ended");
  }
  if (unlink(FilePath(id).c_str()) != 0 && errno != ENOENT) {
    return Unavailable("the store of batches: " + id + ": " +
                       std::generic_category().message(errno));
  }
  unlink(FileJsonPath(id).c_str());
  Take(-found->second.bytes - kFileOverhead);
  files_.erase(found);
  return absl::OkStatus();
}

// ---- Batches

absl::Status BatchStore::WriteBatch(const Batch& batch) {
  return Unwritten(
      WriteFileDurably(BatchPath(batch.id) + std::string(kJsonSuffix), WriteStoredBatch(batch)));
}

// There is no way to delete batches, and their names must not fill the directory.
void BatchStore::ForgetOldBatches(const std::string& owner) {
  std::vector<Batch> own = Owned(batches_, owner);
  std::erase_if(own, [](const Batch& batch) { return !IsFinal(batch.status); });
  const int64_t more = std::ssize(own) - kMostFinishedBatches;
  for (int64_t i = 0; i < more; ++i) {
    unlink((BatchPath(own[i].id) + std::string(kJsonSuffix)).c_str());
    batches_.erase(own[i].id);
    Take(-kFileOverhead);
  }
}

absl::StatusOr<Batch> BatchStore::AddBatch(const std::string& owner, Batch wanted) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string digits, NewStateHandle());
  const std::lock_guard lock(mutex_);
  const auto input = files_.find(wanted.input_file);
  if (input == files_.end() || input->second.owner != owner) {
    return FieldError("input_file_id", "there is no such file");
  }
  if (input->second.purpose != "batch") {
    return FieldError("input_file_id", "the purpose of the file is '" + input->second.purpose +
                                           "', expected 'batch'");
  }
  const auto unfinished = std::count_if(batches_.begin(), batches_.end(), [&](const auto& entry) {
    return entry.second.owner == owner && !IsFinal(entry.second.status);
  });
  if (unfinished >= kMostUnfinishedBatches) {
    return ResourceExhausted(
        fmt::format("{} batches have not ended, as many as may be: try again "
                    "when one has",
                    unfinished));
  }
  HIPPODROME_RETURN_IF_ERROR(CheckRoom(owner, 0));
  wanted.id = std::string(kBatchPrefix) + digits;
  wanted.owner = owner;
  wanted.number = ++last_number_;
  wanted.status = BatchStatus::kValidating;
  wanted.at(BatchStatus::kValidating) = clock_();
  wanted.expires_at = wanted.at(BatchStatus::kValidating) + kBatchSeconds;
  HIPPODROME_RETURN_IF_ERROR(WriteBatch(wanted));
  Take(kFileOverhead);
  batches_.emplace(wanted.id, wanted);
  ++changes_;
  ForgetOldBatches(owner);
  Show();
  if (wake_) wake_();
  return wanted;
}

absl::StatusOr<Batch> BatchStore::FindBatch(const std::string& owner, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(id);
  if (found == batches_.end() || found->second.owner != owner) return NoSuch("batch", id);
  return found->second;
}

std::vector<Batch> BatchStore::Batches(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  return Owned(batches_, owner);
}

absl::StatusOr<Batch> BatchStore::Cancel(const std::string& owner, const std::string& id) {
  HIPPODROME_ASSIGN_OR_RETURN(const Batch now, FindBatch(owner, id));
  if (IsFinal(now.status)) {
    return FailedPrecondition(std::string("the batch is ") + Name(now.status) +
                              ", and can no longer be cancelled");
  }
  if (now.status == BatchStatus::kCancelling) return now;
  HIPPODROME_RETURN_IF_ERROR(Change(id, [&](Batch& batch) {
    if (batch.outcome || IsFinal(batch.status)) return;
    batch.status = BatchStatus::kCancelling;
    batch.at(BatchStatus::kCancelling) = clock_();
  }));
  if (wake_) wake_();
  HIPPODROME_ASSIGN_OR_RETURN(const Batch then, FindBatch(owner, id));
  if (then.status == BatchStatus::kCancelling) return then;
  return FailedPrecondition("all lines are answered: the batch can no longer be cancelled");
}

std::vector<Batch> BatchStore::Unfinished() const {
  std::vector<Batch> unfinished;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, batch] : batches_) {
    if (!IsFinal(batch.status)) unfinished.push_back(batch);
  }
  std::sort(unfinished.begin(), unfinished.end(),
            [](const Batch& a, const Batch& b) { return a.number < b.number; });
  return unfinished;
}

absl::Status BatchStore::Change(const std::string& id, const std::function<void(Batch&)>& change) {
  const std::lock_guard lock(mutex_);
  Batch& batch = batches_.at(id);
  Batch changed = batch;
  change(changed);
  HIPPODROME_RETURN_IF_ERROR(WriteBatch(changed));
  batch = std::move(changed);
  ++changes_;
  Show();
  return absl::OkStatus();
}

void BatchStore::SetCounts(const std::string& id, const LineCounts& counts) {
  const std::lock_guard lock(mutex_);
  batches_.at(id).counts = counts;
}

std::string BatchStore::OutputPath(const std::string& id) const {
  return BatchPath(id) + ".output.jsonl";
}

std::string BatchStore::ErrorPath(const std::string& id) const {
  return BatchPath(id) + ".errors.jsonl";
}

absl::Status BatchStore::Grow(int64_t bytes, bool must) {
  const std::lock_guard lock(mutex_);
  if (!must && bytes_ + bytes > options_.directory_bytes) {
    return ResourceExhausted(
        fmt::format("the directory of batches has {} bytes, and may have {}: delete files that "
                    "nobody needs",
                    bytes_, options_.directory_bytes));
  }
  Take(bytes);
  return absl::OkStatus();
}

absl::Status BatchStore::Publish(Batch& batch) {
  HIPPODROME_RETURN_IF_ERROR(PublishOne(batch, OutputPath(batch.id),
                                        ResultFileId(batch.id, kOutputSuffix), "output",
                                        batch.output_file));
  return PublishOne(batch, ErrorPath(batch.id), ResultFileId(batch.id, kErrorSuffix), "error",
                    batch.error_file);
}

// What is written says the same each time.
absl::Status BatchStore::PublishOne(const Batch& batch, const std::string& path,
                                    const std::string& id, const char* name,
                                    std::string& published) {
  const std::optional<int64_t> grown = SizeOf(path);
  if (grown == 0) unlink(path.c_str());
  if (grown.value_or(0) > 0) {
    const StoredFile file{.id = id,
                          .owner = batch.owner,
                          .name = fmt::format("{}_{}.jsonl", batch.id, name),
                          .purpose = "batch_output",
                          .bytes = *grown,
                          .created_at = clock_(),
                          .number = batch.number};
    HIPPODROME_RETURN_IF_ERROR(
        Unwritten(WriteFileDurably(FileJsonPath(id), WriteStoredFile(file))));
    HIPPODROME_RETURN_IF_ERROR(Unwritten(RenameDurably(path, FilePath(id))));
    const std::lock_guard lock(mutex_);
    files_.emplace(id, file);
    Take(kFileOverhead);
  }
  const std::lock_guard lock(mutex_);
  published = files_.contains(id) ? id : "";
  return absl::OkStatus();
}

// ---- Figures

void BatchStore::Show() {
  std::array<int64_t, kBatchStatuses> counts{};
  for (const auto& [id, batch] : batches_) ++counts[static_cast<size_t>(batch.status)];
  metrics_.SetBatches(counts);
  Take(0);
}

void BatchStore::Take(int64_t bytes) {
  bytes_ += bytes;
  metrics_.SetBytes(bytes_);
}

}  // namespace hippodrome
