// What tests of stores of states have in common.
#ifndef HIPPODROME_TESTS_TESTING_STATE_STORES_H_
#define HIPPODROME_TESTS_TESTING_STATE_STORES_H_

#include <algorithm>
#include <memory>
#include <string>

#include "engine/state/state_file.h"
#include "server/metrics/metrics.h"
#include "server/metrics/state_store_metrics.h"
#include "server/states/state_store.h"
#include "tests/testing/saved_states.h"

namespace hippodrome {

// A file of the small model; all of one position have the same size.
inline StateBytes SmallStateFile(int64_t position, uint32_t seed = 1) {
  return std::make_shared<const std::string>(
      WriteStateFile(SmallState(position, seed), SmallStateLayout()).value());
}

// 32 digits that end with `name`.
inline std::string HandleOf(const std::string& name) {
  return std::string(32 - name.size(), '0') + name;
}

// The series of a store.
class StoreMetrics {
 public:
  StateStoreMetrics& metrics() { return store_; }
  // Of "hippodrome_state_store_" and `series`.
  int64_t Value(const std::string& series) const {
    const std::string text = metrics_.Text();
    const std::string name = "\nhippodrome_state_store_" + series + " ";
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + name.size()));
  }

 private:
  Metrics metrics_;
  StateStoreMetrics store_{metrics_.registry()};
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_STATE_STORES_H_
