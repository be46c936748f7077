#include "tools/command_line/stop_signal.h"

namespace hippodrome {
namespace {

volatile std::sig_atomic_t received = 0;

// Both signals get their default back, so that neither is ignored a second time.
void Note(int) {
  received = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

StopSignal::StopSignal() {
  received = 0;
  struct sigaction action = {};
  action.sa_handler = Note;
  action.sa_flags = SA_RESTART;  // a file that is being written goes on
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignal::Received() const { return received != 0; }

}  // namespace hippodrome
