// Progress of long work on stderr: a bar on a terminal, a line every tenth elsewhere, none
// for what is done within a second.
#ifndef HIPPODROME_TOOLS_PROGRESS_H_
#define HIPPODROME_TOOLS_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace hippodrome {

// Not thread-safe.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // ends the bar's line

  void Update(int64_t done, int64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool terminal_;
  bool open_line_ = false;
  int64_t last_tenth_ = 0;
  Clock::time_point last_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_PROGRESS_H_
