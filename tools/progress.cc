#include "tools/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace hippodrome {
namespace {

constexpr int kWidth = 40;
constexpr auto kRedraw = std::chrono::milliseconds(100);

}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (open_line_) std::fprintf(stderr, "\n");
}

void Progress::Update(int64_t done, int64_t total) {
  if (total <= 0) return;
  const int percent =
      static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total));
  if (!terminal_) {
    if (percent / 10 == last_tenth_) return;
    last_tenth_ = percent / 10;
    std::fprintf(stderr, "%s: %d %%\n", what_.c_str(), percent);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (done < total && now - last_ < kRedraw) return;
  last_ = now;
  const int filled = percent * kWidth / 100;
  std::fprintf(stderr, "\r%s [%s%s] %3d %%", what_.c_str(), std::string(filled, '#').c_str(),
               std::string(kWidth - filled, '.').c_str(), percent);
  std::fflush(stderr);
  open_line_ = true;
}

}  // namespace hippodrome
