// /v1/files and /v1/batches in OpenAI's form.
#ifndef HIPPODROME_SERVER_ROUTES_BATCH_ROUTES_H_
#define HIPPODROME_SERVER_ROUTES_BATCH_ROUTES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/batches/batch_store.h"
#include "server/http/http_types.h"
#include "server/options.h"

namespace hippodrome {

// What a key has does not exist for others. Replies that need the disk are made later. Thread-safe.
class BatchRoutes {
 public:
  // Of a server without SetStore() all calls are refused.
  explicit BatchRoutes(const BatchStoreOptions& options) : file_bytes_(options.file_bytes) {}
  // Must be called before the first request, if at all. `store` must outlive all replies.
  void SetStore(BatchStore& store) { store_ = &store; }

  // Of an upload, that of `http`: the form around a file takes little.
  static int64_t MostUploadBytes(const BatchStoreOptions& options, const HttpOptions& http);

  HttpReply Upload(const HttpRequest& request);
  HttpReply ListFiles(const HttpRequest& request);
  HttpReply GetFile(const HttpRequest& request);
  HttpReply FileContent(const HttpRequest& request);
  HttpReply DeleteFile(const HttpRequest& request);
  HttpReply Create(const HttpRequest& request);
  HttpReply List(const HttpRequest& request);
  HttpReply Get(const HttpRequest& request);
  HttpReply Cancel(const HttpRequest& request);

 private:
  absl::StatusOr<BatchStore*> Store() const;
  absl::StatusOr<StoredFile> Find(const HttpRequest& request) const;

  const int64_t file_bytes_;
  BatchStore* store_ = nullptr;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_ROUTES_BATCH_ROUTES_H_
