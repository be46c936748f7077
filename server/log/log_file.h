// Where lines of a log go.
#ifndef HIPPODROME_SERVER_LOG_LOG_FILE_H_
#define HIPPODROME_SERVER_LOG_LOG_FILE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// An open file descriptor.
class OpenFile {
 public:
  explicit OpenFile(int fd = -1) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();

  // To append to the file at `path`, which is made where there is none; "-": standard error.
  static absl::StatusOr<OpenFile> ToAppend(const std::string& path);

  int fd() const { return fd_; }

 private:
  int fd_;
};

// Writes lines within milliseconds, on a thread of its own: whoever has a line goes on, however
// slow the reader of a pipe is. What waits is bounded; lines beyond that are dropped and counted.
// Thread-safe.
class LogFile {
 public:
  static constexpr int64_t kMostWaitingBytes = int64_t{4} << 20;

  LogFile() = default;
  ~LogFile() { Close(); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // From now on lines go to `file`, and no longer to the one before.
  void Open(OpenFile file);
  // Waits until what is here was written, for a second at most, and takes no more.
  void Close();
  bool open() const { return open_.load(std::memory_order_relaxed); }

  // Whole, with its line feed. Dropped where the file is not open.
  void Write(std::string line);
  // Lines that found no room, or could not be written.
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  void Run();
  // Writes the first of `lines`, as many as fit into one piece, and takes them away.
  void WritePiece(std::deque<std::string>& lines);
  // Whether it was written; gives up where that takes longer than Close() waits.
  bool WriteOut(int fd, const std::string& piece);

  std::atomic<bool> open_ = false;
  std::atomic<int64_t> dropped_ = 0;
  std::atomic<bool> hurry_ = false;  // Close() has waited for long enough

  std::mutex mutex_;  // guards all below
  std::condition_variable wake_, done_;
  std::deque<std::string> lines_;
  int64_t waiting_bytes_ = 0;
  OpenFile file_;
  OpenFile next_file_;
  bool idle_ = false;  // the thread must be woken
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_LOG_LOG_FILE_H_
