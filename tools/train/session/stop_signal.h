// SIGINT and SIGTERM as a wish to stop after the current step.
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_STOP_SIGNAL_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_STOP_SIGNAL_H_

#include <csignal>
#include <cstdint>
#include <string>

namespace hippodrome {

// While it lives, the first of these signals is noted; the next one ends the process at once. One
// at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();  // the signals do again what they did before
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool Received() const;

 private:
  struct sigaction interrupt_ = {};
  struct sigaction terminate_ = {};
};

// What to tell who stopped a run whose run file is `config`: how to go on.
std::string ResumeHint(const std::string& config, int64_t step);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_SESSION_STOP_SIGNAL_H_
