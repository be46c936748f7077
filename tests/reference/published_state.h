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
  // Exported into `arrays` by take(arrays), which returns how many tokens are pending.
  template <typename Take>
  StateValues(const RecurrentState& state, const Take& take) {
    const std::vector<StateArray> arrays = state.arrays();
    for (const StateArray& array : arrays) {
      values_.emplace_back(static_cast<size_t>(array.values()));
    }
    const int64_t pending = take(std::vector<std::span<float>>(values_.begin(), values_.end()));
    for (size_t i = 0; i < arrays.size(); ++i) {
      values_[i].resize(static_cast<size_t>(arrays[i].Of(pending).values()));
    }
  }

  std::vector<float>& operator[](size_t array) { return values_[array]; }
  const std::vector<float>& operator[](size_t array) const { return values_[array]; }
  bool operator==(const StateValues&) const = default;

  std::vector<std::span<const float>> Spans() const { return {values_.begin(), values_.end()}; }

 private:
  std::vector<std::vector<float>> values_;
};

inline StateValues Exported(Backend& backend, const RecurrentState& state, int64_t slot,
                            int64_t position) {
  return {state, [&](std::span<const std::span<float>> arrays) {
            return backend.ExportSlot(state, slot, position, arrays);
          }};
}

struct PublishedState {
  std::vector<float> shift;     // [d, N]: x[n] = sum_{j<=n} B[n-j] u_{T-j}, u the raw k
  std::vector<float> diagonal;  // [h_1, h_2, H, M, 2]: x_T = dA x_{T-1} + dB kv_T
};

// `values`: of an H3 layer with these parameters.
PublishedState Published(const H3Parameters& parameters, const StateValues& values);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_REFERENCE_PUBLISHED_STATE_H_
