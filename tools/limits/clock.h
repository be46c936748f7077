// What work is timed by.
#ifndef HIPPODROME_TOOLS_LIMITS_CLOCK_H_
#define HIPPODROME_TOOLS_LIMITS_CLOCK_H_

#include <chrono>
#include <functional>

namespace hippodrome {

// Seconds since some time that stays the same.
using Clock = std::function<double()>;

inline double SteadySeconds() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LIMITS_CLOCK_H_
