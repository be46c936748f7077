// Going back in a saved state.
#ifndef HIPPODROME_ENGINE_STATE_REWIND_H_
#define HIPPODROME_ENGINE_STATE_REWIND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/state/saved_state.h"

namespace hippodrome {

// What there is of a state's first tokens.
struct Rewound {
  // That after the first of them, to go on from; none where no checkpoint lies before: from
  // nothing.
  std::optional<SavedState> state;
  // The others, which are to be taken in again, before what is new.
  std::vector<int32_t> tokens;
};

// `state` as it was after its first `position` tokens: its last checkpoint at or before them, and
// the tokens from there on. At `position` of the state itself it is the state as it is; before, it
// has no last token: who goes back goes another way. Tokens that are taken in again may round
// otherwise than when they were stepped: where a checkpoint is followed by any, the state is not
// `exact`. From nothing all is one piece again.
// Errors: kInvalidArgument, naming the field, for a position that is not in [0, state.position],
// and for one between checkpoints where the state was saved without its tokens.
// REQUIRES: CheckState() is OK.
absl::StatusOr<Rewound> Rewind(const SavedState& state, int64_t position);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_STATE_REWIND_H_
