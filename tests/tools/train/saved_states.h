// Checkpoints whose values follow from their step.
#ifndef HIPPODROME_TESTS_TOOLS_TRAIN_SAVED_STATES_H_
#define HIPPODROME_TESTS_TOOLS_TRAIN_SAVED_STATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/train/checkpoint/training_state.h"

namespace hippodrome {

inline std::vector<TrainingArray> SomeArrays() {
  return {{"parameter/w", {3, 5}}, {"first_moment/w", {3, 5}}, {"parameter/d", {1}}};
}

inline std::vector<float> ValuesAt(int64_t step, size_t index) {
  std::vector<float> values(index == 2 ? 1 : 15);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(step) + static_cast<float>(index) * 0.25F +
                static_cast<float>(i) * 0.001F;
  }
  return values;
}

inline absl::Status SaveStep(const std::string& output, int64_t step) {
  const TrainingPosition position = {.step = step,
                                     .tokens = 10 * step,
                                     .batch = step + 1,
                                     .seconds = 0.5 * static_cast<double>(step),
                                     .fingerprint = "f00d"};
  std::vector<float> values;
  return SaveTrainingState(output, position, SomeArrays(),
                           [&](size_t index) -> absl::StatusOr<std::span<const float>> {
                             values = ValuesAt(step, index);
                             return std::span<const float>(values);
                           });
}

// Whether every value is that of the state's step.
inline bool HasValuesOfItsStep(const LoadedTrainingState& state) {
  const std::vector<TrainingArray> arrays = SomeArrays();
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto values = state.Read(arrays[i].name);
    if (!values.ok() || *values != ValuesAt(state.position.step, i)) return false;
  }
  return true;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_TRAIN_SAVED_STATES_H_
