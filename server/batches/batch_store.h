// Where files and batches are kept: a directory.
#ifndef HIPPODROME_SERVER_BATCHES_BATCH_STORE_H_
#define HIPPODROME_SERVER_BATCHES_BATCH_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/batches/append_file.h"
#include "server/batches/batch.h"
#include "server/metrics/batch_metrics.h"
#include "server/options.h"
#include "server/states/state_store.h"

namespace hippodrome {

// DIRECTORY/files has the files and, beside each, what it is, FILE.json; DIRECTORY/batches has
// BATCH.json and, of those that run, the files that grow. A file is there when its content has its
// name; what a JSON file says is replaced as a whole. What is damaged or of others is left alone
// and named in the log. All that is told of it is in memory too.
//
// What one owner has does not exist for others. Errors of writing are kUnavailable with the path
// and the system's reason. Thread-safe.
class BatchStore {
 public:
  using Clock = StateStore::Clock;

  // Makes the directory, for this user alone. `metrics` must outlive the store. Errors: kInternal
  // with the path and the system's reason; kFailedPrecondition where another server has it.
  static absl::StatusOr<std::unique_ptr<BatchStore>> Open(const BatchStoreOptions& options,
                                                          BatchMetrics& metrics,
                                                          Clock clock = UnixSeconds);

  // Called, on any thread, whenever there may be more to do. Must be set before anything changes.
  void OnChange(std::function<void()> wake) { wake_ = std::move(wake); }
  int64_t now() const { return clock_(); }

  // ---- For clients.

  // Errors: kResourceExhausted where the owner has too many files; HTTP's 507 where the directory
  // is full.
  absl::StatusOr<StoredFile> AddFile(const std::string& owner, const std::string& name,
                                     std::string_view content);
  // Errors: kNotFound.
  absl::StatusOr<StoredFile> FindFile(const std::string& owner, const std::string& id) const;
  // In the order in which they were made.
  std::vector<StoredFile> Files(const std::string& owner) const;
  // Errors: kNotFound; kFailedPrecondition while a batch reads it.
  absl::Status RemoveFile(const std::string& owner, const std::string& id);
  std::string FilePath(const std::string& id) const { return files_folder_ + "/" + id; }

  // Endpoint, input file and metadata are those of `wanted`. Errors: kInvalidArgument for an input
  // that is not there; kResourceExhausted where too many of the owner's batches are not finished.
  absl::StatusOr<Batch> AddBatch(const std::string& owner, Batch wanted);
  absl::StatusOr<Batch> FindBatch(const std::string& owner, const std::string& id) const;
  std::vector<Batch> Batches(const std::string& owner) const;
  // Errors: kNotFound; kFailedPrecondition for a batch that has ended, or is about to.
  absl::StatusOr<Batch> Cancel(const std::string& owner, const std::string& id);

  // ---- For the one who runs batches.

  // All that have not ended, in the order in which they were made.
  std::vector<Batch> Unfinished() const;
  // Differs from the last time when, but for counts, these may.
  int64_t changes() const { return changes_.load(); }
  // Changes a batch, which must not have ended, also on the disk; after an error it is as before.
  absl::Status Change(const std::string& id, const std::function<void(Batch&)>& change);
  // Notes how far a batch is, for whoever asks.
  void SetCounts(const std::string& id, const LineCounts& counts);
  // The files of answers and of errors that grow while a batch runs.
  std::string OutputPath(const std::string& id) const;
  std::string ErrorPath(const std::string& id) const;
  // Makes room for more in these, or, where `must`, takes it whether or not there is room. Errors:
  // kResourceExhausted.
  absl::Status Grow(int64_t bytes, bool must);
  // Makes of these files, which grow no more, files that clients find, and says which in `batch`.
  // May be called again after any failure or crash.
  absl::Status Publish(Batch& batch);

 private:
  BatchStore(const BatchStoreOptions& options, BatchMetrics& metrics, Clock clock,
             std::unique_ptr<AppendFile> lock);
  absl::Status Load();
  void LoadFile(const std::string& name);
  void LoadBatch(const std::string& name);
  void RemoveLeftOvers();

  // mutex_ is held in these.
  absl::Status CheckRoom(const std::string& owner, int64_t bytes) const;
  absl::Status WriteBatch(const Batch& batch);
  void ForgetOldBatches(const std::string& owner);
  void Show();
  void Take(int64_t bytes);

  absl::Status PublishOne(const Batch& batch, const std::string& path, const std::string& id,
                          const char* name, std::string& published);
  std::string FileJsonPath(const std::string& id) const { return FilePath(id) + ".json"; }
  std::string BatchPath(const std::string& id) const { return batches_folder_ + "/" + id; }

  const BatchStoreOptions options_;
  const std::string files_folder_, batches_folder_;
  BatchMetrics& metrics_;
  const Clock clock_;
  const std::unique_ptr<AppendFile> lock_;
  std::function<void()> wake_;
  std::atomic<int64_t> changes_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, StoredFile> files_;
  std::map<std::string, Batch> batches_;
  int64_t bytes_ = 0;  // of the directory
  int64_t last_number_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_BATCH_STORE_H_
