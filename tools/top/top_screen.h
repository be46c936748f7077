// The picture that `top` draws, as text.
#ifndef HIPPODROME_TOOLS_TOP_TOP_SCREEN_H_
#define HIPPODROME_TOOLS_TOP_TOP_SCREEN_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tools/top/top_figures.h"

namespace hippodrome {

// A value for each reading, the newest last; none: the server did not answer.
using History = std::deque<std::optional<double>>;

struct TopFrame {
  std::string address;
  std::string clock;  // "12:01:03"
  TopFigures figures;
  bool known = false;   // there are figures
  std::string problem;  // why the last reading failed; empty: it did not
  bool paused = false;
  bool totals = false;
  History new_tokens, prompt_tokens, requests;
};

struct ScreenStyle {
  int columns = 80;
  int rows = 24;
  bool color = false;
  bool unicode = true;  // of sparklines; false: ASCII
  bool keys = true;     // the last line tells the keys
};

// At most `rows` lines of at most `columns` columns, without ends of lines; what does not fit is
// left out, models last. The only escape sequences are those of colours.
std::vector<std::string> Render(const TopFrame& frame, const ScreenStyle& style);

// The newest `width` values, each a bar beside the largest of them; blank where there is none.
std::string Sparkline(const History& history, int width, bool unicode);

// Numbers for narrow columns: "1,234", "12.3k", "4.5M"; "-" for none.
std::string ShortNumber(const std::optional<double>& value);
// "812 us", "12.3 ms", "4.56 s".
std::string ShortDuration(const std::optional<double>& seconds);
// "1.2 GiB".
std::string ShortBytes(const std::optional<double>& bytes);

// What a server says of itself, with '?' for all that a terminal would take for more than a
// character of ASCII.
std::string Printable(const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TOP_TOP_SCREEN_H_
