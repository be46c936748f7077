#include "engine/state/rewind.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/field_error.h"

namespace hippodrome {
namespace {

// The first `position` of `rows`, one for each of so many tokens.
std::vector<float> FirstRows(const std::vector<float>& rows, int64_t position, int64_t tokens) {
  const int64_t width = std::ssize(rows) / tokens;
  return {rows.begin(), rows.begin() + position * width};
}

// The state at a checkpoint: checkpoints[count], behind `count` others.
SavedState StateAt(const SavedState& state, int64_t count) {
  const Checkpoint& checkpoint = state.checkpoints[static_cast<size_t>(count)];
  const int64_t position = checkpoint.position;
  SavedState earlier{.model = state.model,
                     .arithmetic = state.arithmetic,
                     .lossy = state.lossy,
                     .exact = state.exact,
                     .position = position,
                     .prompt_tokens = std::min(state.prompt_tokens, position),
                     .seed = state.seed,
                     .created = state.created};
  if (!state.tokens.empty()) {
    earlier.tokens.assign(state.tokens.begin(), state.tokens.begin() + position);
  }
  for (size_t i = 0; i < state.layers.size(); ++i) {
    earlier.layers.push_back(
        {.arrays = (*checkpoint.layers)[i],
         .keys = FirstRows(state.layers[i].keys, position, state.position),
         .values = FirstRows(state.layers[i].values, position, state.position)});
  }
  earlier.checkpoints.assign(state.checkpoints.begin(), state.checkpoints.begin() + count);
  return earlier;
}

}  // namespace

absl::StatusOr<Rewound> Rewind(const SavedState& state, int64_t position) {
  if (position < 0 || position > state.position) {
    return FieldError("position", fmt::format("{}, expected 0 to {}, the tokens of the state",
                                              position, state.position));
  }
  if (position == state.position) return Rewound{.state = state, .tokens = {}};
  const auto behind =
      std::upper_bound(state.checkpoints.begin(), state.checkpoints.end(), position,
                       [](int64_t at, const Checkpoint& c) { return at < c.position; });
  const int64_t before = behind - state.checkpoints.begin();
  const int64_t from = before > 0 ? state.checkpoints[static_cast<size_t>(before - 1)].position : 0;
  if (from < position && state.tokens.empty()) {
    return FieldError("position",
                      fmt::format("the {} tokens before {} are to be taken in again, and the state "
                                  "was saved without its tokens",
                                  position - from, position));
  }
  Rewound rewound;
  if (before > 0) {
    rewound.state = StateAt(state, before - 1);
    rewound.state->exact = state.exact && from == position;
  }
  if (from < position) {
    rewound.tokens.assign(state.tokens.begin() + from, state.tokens.begin() + position);
  }
  return rewound;
}

}  // namespace hippodrome
