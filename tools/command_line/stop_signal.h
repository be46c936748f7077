// SIGINT and SIGTERM as a wish to stop when what is at hand is done.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_STOP_SIGNAL_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_STOP_SIGNAL_H_

#include <csignal>

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

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_STOP_SIGNAL_H_
