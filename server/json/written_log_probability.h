// How bodies write a log probability.
#ifndef HIPPODROME_SERVER_JSON_WRITTEN_LOG_PROBABILITY_H_
#define HIPPODROME_SERVER_JSON_WRITTEN_LOG_PROBABILITY_H_

#include <algorithm>
#include <cmath>

namespace hippodrome {

// The engine's float as a double that is read back as the same one; what is not a number or below
// -9999 is -9999, for JSON has no form for it.
inline double WrittenLogProbability(float log_probability) {
  constexpr float kLeast = -9999;
  return std::isfinite(log_probability) ? std::max(log_probability, kLeast) : kLeast;
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_WRITTEN_LOG_PROBABILITY_H_
