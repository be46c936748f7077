// States of a small model that nobody has, for tests of what holds them.
#ifndef HIPPODROME_TESTS_TESTING_SAVED_STATES_H_
#define HIPPODROME_TESTS_TESTING_SAVED_STATES_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/state/saved_state.h"

namespace hippodrome {

// d 4, N 4, an attention layer between two of H3, 50 ids.
inline StateLayout SmallStateLayout() {
  const LayerLayout h3{.arrays = H3StateArrays(4, 1, 4)};
  return {.model = "0123456789abcdef0123456789abcdef",
          .vocab_size = 50,
          .layers = {h3, {.row_width = 4}, h3}};
}

// Random numbers; the same for the same seed.
inline SavedState SmallState(int64_t position, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const StateLayout layout = SmallStateLayout();
  SavedState state{.model = layout.model,
                   .arithmetic = "cpu AVX2 f32",
                   .position = position,
                   .prompt_tokens = position / 2,
                   .last_token = 7,
                   .seed = UINT64_MAX - seed,
                   .created = 1800000000};
  const auto numbers = [&](int64_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  };
  for (int64_t i = 0; i < position; ++i) {
    state.tokens.push_back(static_cast<int32_t>(random() % layout.vocab_size));
  }
  for (const LayerLayout& of : layout.layers) {
    SavedLayer& layer = state.layers.emplace_back();
    for (const StateArray& array : of.arrays) {
      layer.arrays.push_back(numbers(array.Of(position % kCaptureTokens).values()));
    }
    layer.keys = numbers(position * of.row_width);
    layer.values = numbers(position * of.row_width);
  }
  return state;
}

// The same with checkpoints behind `positions`.
inline SavedState SmallStateWith(int64_t position, const std::vector<int64_t>& positions) {
  SavedState state = SmallState(position);
  for (const int64_t at : positions) {
    std::vector<LayerArrays> layers;
    for (const SavedLayer& layer : SmallState(at, static_cast<uint32_t>(at)).layers) {
      layers.push_back(layer.arrays);
    }
    state.checkpoints.push_back(
        {at, std::make_shared<const std::vector<LayerArrays>>(std::move(layers))});
  }
  return state;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_SAVED_STATES_H_
