#include "server/log/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <exception>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

// Lines that come within so long of one another wake the thread once: each time takes a processor
// from arithmetic.
constexpr std::chrono::milliseconds kGather{25};
constexpr std::chrono::milliseconds kPatience{50};
constexpr std::chrono::seconds kLastWords{1};

}  // namespace

OpenFile::OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<OpenFile> OpenFile::ToAppend(const std::string& path) {
  constexpr mode_t kMode = 0640;
  const int fd = path == "-" ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
                             : open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
  if (fd < 0) return InvalidArgument(path + ": cannot be written: " + std::strerror(errno));
  return OpenFile(fd);
}

void LogFile::Open(OpenFile file) {
  std::lock_guard lock(mutex_);
  next_file_ = std::move(file);
  closing_ = false;
  hurry_.store(false);
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  open_.store(true);
  wake_.notify_one();
}

void LogFile::Close() {
  {
    std::unique_lock lock(mutex_);
    open_.store(false);
    closing_ = true;
    wake_.notify_one();
    done_.wait_for(lock, kLastWords, [this] { return lines_.empty() && idle_; });
    hurry_.store(true);
  }
  if (thread_.joinable()) thread_.join();
}

void LogFile::Write(std::string line) {
  const auto bytes = static_cast<int64_t>(line.size());
  try {
    std::lock_guard lock(mutex_);
    if (!open()) return;
    if (waiting_bytes_ + bytes <= kMostWaitingBytes) {
      lines_.push_back(std::move(line));
      waiting_bytes_ += bytes;
      if (std::exchange(idle_, false)) wake_.notify_one();
      return;
    }
  } catch (const std::exception&) {
    // Without memory for it.
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

void LogFile::Run() {
  std::deque<std::string> lines;
  std::unique_lock lock(mutex_);
  for (bool more = true; more;) {
    if (next_file_.fd() >= 0) file_ = std::exchange(next_file_, OpenFile());
    lines.swap(lines_);
    lock.unlock();
    const bool busy = !lines.empty();
    while (!lines.empty()) WritePiece(lines);
    lock.lock();
    if (busy && !closing_) wake_.wait_for(lock, kGather, [this] { return closing_; });
    if (!lines_.empty() || next_file_.fd() >= 0) continue;
    idle_ = true;
    done_.notify_all();
    more = !closing_;
    if (more) {
      wake_.wait(lock, [this] { return closing_ || !idle_ || next_file_.fd() >= 0; });
    }
    idle_ = !more;
  }
}

// One write for several lines: each costs as much as a small request.
void LogFile::WritePiece(std::deque<std::string>& lines) {
  std::string piece;
  int64_t count = 0;
  do {
    piece += lines.front();
    lines.pop_front();
    ++count;
  } while (!lines.empty() && piece.size() + lines.front().size() <= PIPE_BUF);
  if (!WriteOut(file_.fd(), piece)) dropped_.fetch_add(count, std::memory_order_relaxed);
  std::lock_guard written(mutex_);
  waiting_bytes_ -= static_cast<int64_t>(piece.size());
}

bool LogFile::WriteOut(int fd, const std::string& piece) {
  size_t done = 0;
  while (done < piece.size()) {
    // A pipe that has room takes PIPE_BUF bytes without waiting, and no line is longer.
    pollfd ready{fd, POLLOUT, 0};
    const int wait = hurry_.load() ? 0 : static_cast<int>(kPatience.count());
    const int events = poll(&ready, 1, wait);
    if (events == 0 || (events < 0 && errno == EINTR)) {
      if (hurry_.load()) return false;
      continue;
    }
    const ssize_t written = write(fd, piece.data() + done, piece.size() - done);
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written > 0) done += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace hippodrome
