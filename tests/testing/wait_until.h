#ifndef HIPPODROME_TESTS_TESTING_WAIT_UNTIL_H_
#define HIPPODROME_TESTS_TESTING_WAIT_UNTIL_H_

#include <chrono>
#include <functional>
#include <thread>

namespace hippodrome {

// Waits for something that another thread will do. False if it did not happen in a minute, which
// only a hang explains.
inline bool WaitUntil(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_WAIT_UNTIL_H_
