// Ends a text before the first of several stop strings.
#ifndef HIPPODROME_SERVER_BATCHING_STOP_MATCHER_H_
#define HIPPODROME_SERVER_BATCHING_STOP_MATCHER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hippodrome {

// Finds the stop string whose last byte comes first; of several that end there, the longest. What
// may become part of one is held back, so that no byte of a stop string is ever returned. Linear in
// the text for each stop string (Knuth, Morris and Pratt). The concatenation of all results is the
// same however the text was cut. Not thread-safe.
class StopMatcher {
 public:
  // REQUIRES: no stop string is empty.
  explicit StopMatcher(std::vector<std::string> stops);

  // Adds text; returns what now certainly lies before the end. After a stop: "".
  std::string Append(std::string_view text);
  // The text is complete: what was held back, or "" after a stop.
  std::string Finish();
  bool stopped() const { return stopped_; }
  // What is held back.
  const std::string& held() const { return held_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> borders;  // borders[n]: longest proper border of the first n bytes
    size_t matched = 0;           // bytes of `text` that end the text so far
  };

  // Advances all patterns; returns the length of the longest one that is now complete, or 0.
  size_t Advance(char byte);
  size_t LongestPartial() const;

  std::vector<Pattern> patterns_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_STOP_MATCHER_H_
