#include "tools/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace hippodrome {
namespace {

constexpr int kWidth = 40;
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLineEvery = std::chrono::seconds(1);

}  // namespace

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(isatty(STDERR_FILENO)), last_(Clock::now()) {}

Progress::~Progress() {
  if (open_line_) std::fprintf(stderr, "\n");
}

void Progress::Update(int64_t done, int64_t total) {
  if (total <= 0) return;
  const int percent =
      static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total));
  const Clock::time_point now = Clock::now();
  if (!terminal_) {
    if (percent / 10 == last_tenth_ || now - last_ < kLineEvery) return;
    last_tenth_ = percent / 10;
    last_ = now;
    std::fprintf(stderr, "%s: %d %%\n", what_.c_str(), percent);
    return;
  }
  if (done < total && now - last_ < kRedraw) return;
  last_ = now;
  const int filled = percent * kWidth / 100;
  std::fprintf(stderr, "\r%s [%s%s] %3d %%", what_.c_str(), std::string(filled, '#').c_str(),
               std::string(kWidth - filled, '.').c_str(), percent);
  std::fflush(stderr);
  open_line_ = true;
}

}  // namespace hippodrome
