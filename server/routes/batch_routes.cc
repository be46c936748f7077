#include "server/routes/batch_routes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/batches/batch_input.h"
#include "server/guarded.h"
#include "server/http/http_replies.h"
#include "server/http/multipart.h"
#include "server/http/query.h"
#include "server/json/batch_json.h"

namespace hippodrome {
namespace {

using OrderedJson = nlohmann::ordered_json;
using QueryParameters = std::map<std::string, std::string>;

constexpr size_t kContentPiece = 256 << 10;
constexpr int64_t kFormBytes = int64_t{64} << 10;
constexpr size_t kMostFileNameBytes = 255;

// The part of a list that a client asks for.
struct PageOfList {
  int64_t limit = 0;
  std::string after;
  bool ascending = false;
  std::string purpose;  // "": any
};

std::string Owner(const HttpRequest& request) {
  return request.permit == nullptr ? "" : request.permit->key();
}

// The reply that `make`, which may wait for the disk and returns StatusOr<OrderedJson>, gives
// later.
template <typename Make>
HttpReply ObjectLater(const Make& make) {
  HttpReply reply;
  reply.later = [make] {
    const absl::StatusOr<OrderedJson> json = make();
    return json.ok() ? Ok(DumpObject(*json)) : Failed(json.status());
  };
  return reply;
}

// Gives out a file piece by piece, also when it has been deleted meanwhile.
class DescriptorWork : public HttpWork {
 public:
  explicit DescriptorWork(int descriptor) : descriptor_(descriptor) {}
  ~DescriptorWork() override { close(descriptor_); }

  void OnUpdate(std::function<void()> wake) override {
    wake_ = std::move(wake);
    wake_();
  }

  bool Advance(HttpResponse& response) override {
    const size_t before = response.body.size();
    response.body.resize(before + kContentPiece);
    ssize_t bytes = 0;
    do {
      bytes = read(descriptor_, response.body.data() + before, kContentPiece);
    } while (bytes < 0 && errno == EINTR);
    // Then the connection ends without the last chunk, and the client knows.
    if (bytes < 0) throw std::runtime_error("a file that a client fetches cannot be read");
    response.body.resize(before + static_cast<size_t>(bytes));
    if (bytes == 0) return true;
    wake_();
    return false;
  }

 private:
  const int descriptor_;
  std::function<void()> wake_;
};

absl::StatusOr<int64_t> Limit(const std::string& text, int64_t most) {
  int64_t limit = 0;
  if (absl::SimpleAtoi(text, &limit) && limit >= 1 && limit <= most) return limit;
  return FieldError("limit", fmt::format("expected 1 to {}", most));
}

absl::Status ReadQueryParameter(const std::string& name, const std::string& value, int64_t most,
                                PageOfList& page) {
  if (name == "limit") {
    HIPPODROME_ASSIGN_OR_RETURN(page.limit, Limit(value, most));
  } else if (name == "after") {
    page.after = value;
  } else if (name == "order") {
    if (value != "asc" && value != "desc") return FieldError(name, "expected asc or desc");
    page.ascending = value == "asc";
  } else if (name == "purpose") {
    page.purpose = value;
  } else {
    return FieldError(name.substr(0, 64), "there is no such parameter here");
  }
  return absl::OkStatus();
}

absl::StatusOr<PageOfList> ReadPage(const HttpRequest& request, int64_t usual, int64_t most) {
  HIPPODROME_ASSIGN_OR_RETURN(const QueryParameters parameters, ParseQuery(request.query));
  PageOfList page{.limit = usual};
  for (const auto& [name, value] : parameters) {
    HIPPODROME_RETURN_IF_ERROR(ReadQueryParameter(name, value, most, page));
  }
  return page;
}

// `objects` come in the order in which they were made.
template <typename Object, typename ToJson>
absl::StatusOr<OrderedJson> PageJson(std::vector<Object> objects, const PageOfList& page,
                                     ToJson to_json) {
  if (!page.ascending) std::reverse(objects.begin(), objects.end());
  auto next = objects.begin();
  if (!page.after.empty()) {
    const auto is = [&](const Object& object) { return object.id == page.after; };
    next = std::find_if(objects.begin(), objects.end(), is);
    if (next == objects.end()) return FieldError("after", "there is no such object");
    ++next;
  }
  const int64_t left = objects.end() - next;
  const auto end = next + std::min(page.limit, left);
  OrderedJson data = OrderedJson::array();
  for (auto object = next; object != end; ++object) data.push_back(to_json(*object));
  const bool none = data.empty();
  return OrderedJson{{"object", "list"},
                     {"data", std::move(data)},
                     {"first_id", none ? OrderedJson(nullptr) : OrderedJson(next->id)},
                     {"last_id", none ? OrderedJson(nullptr) : OrderedJson((end - 1)->id)},
                     {"has_more", end != objects.end()}};
}

struct UploadedFile {
  std::string name;
  std::string_view content;
};

absl::Status CheckContent(std::string_view content, int64_t most) {
  if (std::ssize(content) > most) {
    return WithHttpStatus(absl::OutOfRangeError(fmt::format(
                              "the file has {} bytes, and may have {}", content.size(), most)),
                          413);
  }
  if (content.starts_with("\x1f\x8b")) {
    return FieldError("file", "it is packed: expected lines of JSON");
  }
  return absl::OkStatus();
}

absl::StatusOr<UploadedFile> ReadUpload(const HttpRequest& request, int64_t most) {
  const auto type = request.headers.find("content-type");
  HIPPODROME_ASSIGN_OR_RETURN(
      const std::vector<FormPart> parts,
      ParseMultipart(type == request.headers.end() ? "" : type->second, request.body));
  std::map<std::string, const FormPart*> named;
  for (const FormPart& part : parts) {
    if (part.name != "file" && part.name != "purpose") {
      return FieldError(part.name.substr(0, 64), "there is no such field here");
    }
    if (!named.emplace(part.name, &part).second) return FieldError(part.name, "it is there twice");
  }
  for (const char* name : {"purpose", "file"}) {
    if (!named.contains(name)) return FieldError(name, "it is missing");
  }
  if (named["purpose"]->content != "batch") {
    return FieldError("purpose", "expected batch: this server keeps files for batches alone");
  }
  const FormPart& file = *named["file"];
  if (!file.file_name) return FieldError("file", "it has no filename");
  if (file.file_name->size() > kMostFileNameBytes) {
    return FieldError("file", "its filename has more than 255 bytes");
  }
  HIPPODROME_RETURN_IF_ERROR(CheckContent(file.content, most));
  return UploadedFile{*file.file_name, file.content};
}

absl::StatusOr<Batch> NewBatch(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(BatchRequest request, ParseBatch(body));
  const auto endpoints = BatchEndpoints();
  if (std::find(endpoints.begin(), endpoints.end(), request.endpoint) == endpoints.end()) {
    std::string names;
    for (const std::string_view name : endpoints)
      names += (names.empty() ? "" : ", ") + std::string(name);
    return FieldError("endpoint", "expected one of " + names);
  }
  Batch batch;
  batch.endpoint = std::move(request.endpoint);
  batch.input_file = std::move(request.input_file);
  batch.metadata = std::move(request.metadata);
  return batch;
}

}  // namespace

int64_t BatchRoutes::MostUploadBytes(const BatchStoreOptions& options, const HttpOptions& http) {
  if (options.directory.empty()) return 0;
  return std::min(options.file_bytes + kFormBytes, http.max_body_bytes_total);
}

absl::StatusOr<BatchStore*> BatchRoutes::Store() const {
  if (store_ != nullptr) return store_;
  return FailedPrecondition("this server keeps no files and batches: start it with --batch-dir");
}

absl::StatusOr<StoredFile> BatchRoutes::Find(const HttpRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const BatchStore* store, Store());
  return store->FindFile(Owner(request), request.parameters.at("id"));
}

// ---- Files

HttpReply BatchRoutes::Upload(const HttpRequest& request) {
  const absl::StatusOr<BatchStore*> store = Store();
  if (!store.ok()) return Failed(store.status());
  return ObjectLater([this, store = *store, &request]() -> absl::StatusOr<OrderedJson> {
    HIPPODROME_ASSIGN_OR_RETURN(const UploadedFile upload, ReadUpload(request, file_bytes_));
    HIPPODROME_ASSIGN_OR_RETURN(const StoredFile file,
                                store->AddFile(Owner(request), upload.name, upload.content));
    return FileJson(file);
  });
}

HttpReply BatchRoutes::ListFiles(const HttpRequest& request) {
  return ObjectLater([this, &request]() -> absl::StatusOr<OrderedJson> {
    HIPPODROME_ASSIGN_OR_RETURN(const BatchStore* store, Store());
    HIPPODROME_ASSIGN_OR_RETURN(const PageOfList page, ReadPage(request, kMostFiles, kMostFiles));
    std::vector<StoredFile> files = store->Files(Owner(request));
    if (!page.purpose.empty()) {
      std::erase_if(files, [&](const StoredFile& file) { return file.purpose != page.purpose; });
    }
    return PageJson(std::move(files), page, FileJson);
  });
}

HttpReply BatchRoutes::GetFile(const HttpRequest& request) {
  const absl::StatusOr<StoredFile> file = Find(request);
  return file.ok() ? Ok(DumpObject(FileJson(*file))) : Failed(file.status());
}

HttpReply BatchRoutes::FileContent(const HttpRequest& request) {
  HttpReply reply;
  reply.later = [this, &request] {
    const absl::StatusOr<StoredFile> file = Find(request);
    if (!file.ok()) return Failed(file.status());
    HttpReply content;
    content.response.content_type = "application/octet-stream";
    if (request.method == "HEAD") return content;
    const int descriptor = open(store_->FilePath(file->id).c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return Failed(Internal("the file cannot be read"));
    content.streamed = true;
    content.work = std::make_unique<DescriptorWork>(descriptor);
    return content;
  };
  return reply;
}

HttpReply BatchRoutes::DeleteFile(const HttpRequest& request) {
  return ObjectLater([this, &request]() -> absl::StatusOr<OrderedJson> {
    HIPPODROME_ASSIGN_OR_RETURN(BatchStore * store, Store());
    const std::string& id = request.parameters.at("id");
    HIPPODROME_RETURN_IF_ERROR(store->RemoveFile(Owner(request), id));
    return OrderedJson{{"id", id}, {"object", "file"}, {"deleted", true}};
  });
}

// ---- Batches

HttpReply BatchRoutes::Create(const HttpRequest& request) {
  const absl::StatusOr<Batch> wanted = NewBatch(request.body);
  if (!wanted.ok()) return Failed(wanted.status());
  return ObjectLater([this, wanted = *wanted, &request]() -> absl::StatusOr<OrderedJson> {
    HIPPODROME_ASSIGN_OR_RETURN(BatchStore * store, Store());
    HIPPODROME_ASSIGN_OR_RETURN(const Batch batch, store->AddBatch(Owner(request), wanted));
    return BatchJson(batch);
  });
}

HttpReply BatchRoutes::List(const HttpRequest& request) {
  return ObjectLater([this, &request]() -> absl::StatusOr<OrderedJson> {
    constexpr int64_t kUsual = 20;
    constexpr int64_t kMost = 100;
    HIPPODROME_ASSIGN_OR_RETURN(const BatchStore* store, Store());
    HIPPODROME_ASSIGN_OR_RETURN(const PageOfList page, ReadPage(request, kUsual, kMost));
    return PageJson(store->Batches(Owner(request)), page, BatchJson);
  });
}

HttpReply BatchRoutes::Get(const HttpRequest& request) {
  const absl::StatusOr<BatchStore*> store = Store();
  if (!store.ok()) return Failed(store.status());
  const absl::StatusOr<Batch> batch =
      (*store)->FindBatch(Owner(request), request.parameters.at("id"));
  return batch.ok() ? Ok(DumpObject(BatchJson(*batch))) : Failed(batch.status());
}

HttpReply BatchRoutes::Cancel(const HttpRequest& request) {
  return ObjectLater([this, &request]() -> absl::StatusOr<OrderedJson> {
    HIPPODROME_ASSIGN_OR_RETURN(BatchStore * store, Store());
    HIPPODROME_ASSIGN_OR_RETURN(const Batch batch,
                                store->Cancel(Owner(request), request.parameters.at("id")));
    return BatchJson(batch);
  });
}

}  // namespace hippodrome
