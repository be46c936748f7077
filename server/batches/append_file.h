// A file that grows, and what is left of it when its writer was killed.
#ifndef HIPPODROME_SERVER_BATCHES_APPEND_FILE_H_
#define HIPPODROME_SERVER_BATCHES_APPEND_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// All errors: kInternal with the path and the system's reason. Not thread-safe.
class AppendFile {
 public:
  // Makes the file where there is none, and keeps what is in it; "-" is standard output. Errors:
  // also kFailedPrecondition while another process has it open so.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(const std::string& path);
  ~AppendFile();  // what was not flushed is lost
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::string& path() const { return path_; }
  // Bytes in it and in the buffer.
  int64_t size() const { return size_; }

  // Adds to the buffer, which goes out when it is large, or by Flush(): then it outlives the
  // process. Sync() makes it outlive a loss of power. What could not be written stays in the
  // buffer, for the next Flush().
  absl::Status Append(std::string_view bytes);
  absl::Status Flush();
  absl::Status Sync();
  // Replaces bytes that are there.
  absl::Status Overwrite(int64_t position, std::string_view bytes);
  // Leaves the first `size` bytes. REQUIRES: the buffer is empty; they are there.
  absl::Status Truncate(int64_t size);

 private:
  AppendFile(std::string path, int descriptor, int64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  absl::Status Failure() const;

  const std::string path_;
  const int descriptor_;
  int64_t size_;
  std::string buffer_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_APPEND_FILE_H_
