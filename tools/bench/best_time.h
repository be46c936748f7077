// The time of a piece of work on a machine that others share.
#ifndef HIPPODROME_TOOLS_BENCH_BEST_TIME_H_
#define HIPPODROME_TOOLS_BENCH_BEST_TIME_H_

#include <algorithm>
#include <chrono>
#include <limits>

namespace hippodrome {

// Keeps the shortest of several runs, in seconds.
class BestTime {
 public:
  template <typename Work>
  void Run(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    Take(elapsed.count());
  }
  void Take(double seconds) { seconds_ = std::min(seconds_, seconds); }

  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BEST_TIME_H_
