// Server-sent events, as completions are streamed.
#ifndef HIPPODROME_TOOLS_CLIENT_EVENT_STREAM_H_
#define HIPPODROME_TOOLS_CLIENT_EVENT_STREAM_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace hippodrome {

// Cuts what comes, in pieces of any size, into events.
class EventStream {
 public:
  explicit EventStream(std::function<void(std::string_view data)> on_event)
      : on_event_(std::move(on_event)) {}

  // Calls `on_event` with the data of each "data:" line that is complete. Comments and other
  // fields say nothing. False: a line is longer than kMostLine.
  bool Add(std::string_view piece) {
    rest_.append(piece);
    std::string_view text = rest_;
    for (size_t end; (end = text.find('\n')) != std::string_view::npos;) {
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.starts_with("data:")) continue;
      line.remove_prefix(5);
      if (line.starts_with(' ')) line.remove_prefix(1);
      on_event_(line);
    }
    rest_.erase(0, rest_.size() - text.size());
    return rest_.size() <= kMostLine;
  }

  static constexpr size_t kMostLine = 1 << 20;

 private:
  std::function<void(std::string_view)> on_event_;
  std::string rest_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CLIENT_EVENT_STREAM_H_
