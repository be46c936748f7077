// The terminal as a screen to draw on and keys to read.
#ifndef HIPPODROME_TOOLS_TOP_TERMINAL_H_
#define HIPPODROME_TOOLS_TOP_TERMINAL_H_

#include <termios.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/top/top_screen.h"

namespace hippodrome {

// The controlling terminal, opened by itself, so that nobody else's descriptors change. Show()
// takes the alternate screen, without echo or cursor; Restore(), which destroying calls, puts all
// back.
class Terminal {
 public:
  // Errors: kFailedPrecondition, there is none.
  static absl::StatusOr<Terminal> Open();
  Terminal(Terminal&& other) noexcept;
  ~Terminal();

  // To wait for keys on; it stays this object's.
  int descriptor() const { return descriptor_; }
  // Its size, and whether it is to have colours (NO_COLOR and TERM say) and more than ASCII.
  ScreenStyle Style() const;

  void Show();
  void Restore();
  // Each line in its place; what was below them goes.
  void Draw(const std::vector<std::string>& lines);

 private:
  explicit Terminal(int descriptor) : descriptor_(descriptor) {}
  void Write(const std::string& text) const;

  int descriptor_;
  bool shown_ = false;
  termios before_{};
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TOP_TERMINAL_H_
