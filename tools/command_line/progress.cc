#include "tools/command_line/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace hippodrome {
namespace {

constexpr int kWidth = 40;
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLineEvery = std::chrono::seconds(1);
constexpr auto kNoteEvery = std::chrono::seconds(30);
constexpr const char* kEraseRest = "\033[K";  // of the terminal's line, where a longer note was

}  // namespace

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(isatty(STDERR_FILENO)), last_(Clock::now()) {}

Progress::~Progress() {
  if (open_line_) std::fprintf(stderr, "\n");
}

void Progress::PrintLine(int percent, const std::string& note) {
  const Clock::duration since = Clock::now() - last_;
  const bool tenth = percent / 10 != last_tenth_ && since >= kLineEvery;
  if (!tenth && (note.empty() || since < kNoteEvery)) return;
  last_tenth_ = percent / 10;
  last_ = Clock::now();
  std::fprintf(stderr, "%s: %d %%%s%s\n", what_.c_str(), percent, note.empty() ? "" : ", ",
               note.c_str());
}

void Progress::Update(int64_t done, int64_t total, const std::string& note) {
  if (total <= 0) return;
  const int percent =
      static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total));
  if (!terminal_) return PrintLine(percent, note);
  const Clock::time_point now = Clock::now();
  if (done < total && now - last_ < kRedraw) return;
  last_ = now;
  const int filled = percent * kWidth / 100;
  std::fprintf(stderr, "\r%s [%s%s] %3d %% %s%s", what_.c_str(), std::string(filled, '#').c_str(),
               std::string(kWidth - filled, '.').c_str(), percent, note.c_str(), kEraseRest);
  std::fflush(stderr);
  open_line_ = true;
}

}  // namespace hippodrome
