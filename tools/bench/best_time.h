// The time of a piece of work on a machine that others share.
#ifndef HIPPODROME_TOOLS_BENCH_BEST_TIME_H_
#define HIPPODROME_TOOLS_BENCH_BEST_TIME_H_

#include <algorithm>
#include <chrono>
#include <limits>

namespace hippodrome {

// Seconds that `work` takes.
template <typename Work>
double SecondsOf(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Keeps the shortest of several runs, in seconds.
class BestTime {
 public:
  template <typename Work>
  void Run(const Work& work) {
    Take(SecondsOf(work));
  }
  void Take(double seconds) { seconds_ = std::min(seconds_, seconds); }

  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BEST_TIME_H_
