// What is kept of a sequence in one H3 layer: the values of RecurrentState::arrays(), and the same
// in the definition of the published code.
#ifndef HIPPODROME_TESTS_REFERENCE_PUBLISHED_STATE_H_
#define HIPPODROME_TESTS_REFERENCE_PUBLISHED_STATE_H_

#include <span>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome {

// The values of all arrays of a state.
class StateValues {
 public:
  explicit StateValues(const RecurrentState& state) {
    for (const StateArray& array : state.arrays()) {
      values_.emplace_back(static_cast<size_t>(array.values()));
    }
  }

  std::vector<float>& operator[](size_t array) { return values_[array]; }
  const std::vector<float>& operator[](size_t array) const { return values_[array]; }
  bool operator==(const StateValues&) const = default;

  std::vector<std::span<float>> Spans() { return {values_.begin(), values_.end()}; }
  std::vector<std::span<const float>> Spans() const { return {values_.begin(), values_.end()}; }

 private:
  std::vector<std::vector<float>> values_;
};

inline StateValues Exported(Backend& backend, const RecurrentState& state, int64_t slot,
                            int64_t position) {
  StateValues values(state);
  backend.ExportSlot(state, slot, position, values.Spans());
  return values;
}

struct PublishedState {
  std::vector<float> shift;     // [d, N]: x[n] = sum_{j<=n} B[n-j] u_{T-j}, u the raw k
  std::vector<float> diagonal;  // [h_1, h_2, H, M, 2]: x_T = dA x_{T-1} + dB kv_T
};

// `values`: of an H3 layer with these parameters.
PublishedState Published(const H3Parameters& parameters, const StateValues& values);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_REFERENCE_PUBLISHED_STATE_H_
