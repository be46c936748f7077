// Progress of long work on stderr: a bar on a terminal, a line every tenth elsewhere, none
// for what is done within a second. Work that has something to tell gets a line every half minute.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_PROGRESS_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace hippodrome {

// Not thread-safe.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // ends the bar's line

  // `note`: what to say behind the percentage, in one line.
  void Update(int64_t done, int64_t total, const std::string& note = "");

 private:
  using Clock = std::chrono::steady_clock;

  void PrintLine(int percent, const std::string& note);

  std::string what_;
  bool terminal_;
  bool open_line_ = false;
  int64_t last_tenth_ = 0;
  Clock::time_point last_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_PROGRESS_H_
