#include "tools/top/terminal.h"

#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

absl::StatusOr<Terminal> Terminal::Open() {
  const int descriptor = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) {
    return FailedPrecondition(std::string("no terminal to draw on (") + std::strerror(errno) +
                              "); --once prints a snapshot");
  }
  std::setlocale(LC_CTYPE, "");
  return Terminal(descriptor);
}

Terminal::Terminal(Terminal&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      shown_(std::exchange(other.shown_, false)),
      before_(other.before_) {}

Terminal::~Terminal() {
  Restore();
  if (descriptor_ >= 0) ::close(descriptor_);
}

ScreenStyle Terminal::Style() const {
  ScreenStyle style;
  winsize size{};
  if (::ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    style.columns = size.ws_col;
    style.rows = size.ws_row;
  }
  const std::string kind = Environment("TERM");
  style.color = Environment("NO_COLOR").empty() && !kind.empty() && kind != "dumb";
  style.unicode = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  return style;
}

void Terminal::Show() {
  if (shown_) return;
  ::tcgetattr(descriptor_, &before_);
  termios raw = before_;
  // Signals stay those of the keys.
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(descriptor_, TCSANOW, &raw);
  shown_ = true;
  Write("\x1b[?1049h\x1b[?25l\x1b[2J");
}

void Terminal::Restore() {
  if (!shown_) return;
  Write("\x1b[?25h\x1b[?1049l");
  ::tcsetattr(descriptor_, TCSANOW, &before_);
  shown_ = false;
}

void Terminal::Draw(const std::vector<std::string>& lines) {
  if (!shown_) return;
  std::string text = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    // No end behind the last line: it would scroll a full screen.
    text += (i > 0 ? "\r\n" : "") + lines[i] + "\x1b[K";
  }
  Write(text + "\x1b[J");
}

void Terminal::Write(const std::string& text) const {
  for (size_t written = 0; written < text.size();) {
    const ssize_t size = ::write(descriptor_, text.data() + written, text.size() - written);
    if (size > 0) {
      written += static_cast<size_t>(size);
    } else if (size < 0 && errno == EAGAIN) {
      // Who waits for keys has made it so that it does not block.
      pollfd room{descriptor_, POLLOUT, 0};
      ::poll(&room, 1, 1000);
    } else if (size < 0 && errno != EINTR) {
      return;
    }
  }
}

}  // namespace hippodrome
