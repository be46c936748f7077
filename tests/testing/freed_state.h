// What nobody holds, filled with values that nobody may see.
#ifndef HIPPODROME_TESTS_TESTING_FREED_STATE_H_
#define HIPPODROME_TESTS_TESTING_FREED_STATE_H_

#include "engine/state/decode_state.h"
#include "kernels/backend.h"

namespace hippodrome {

// Fills the slot, unless it is -1, and the pages of `freed` with NaN in all layers. `backend`: that
// of MakeTestBackend(), which has made the layers' states.
void FillFreed(Backend& backend, const LayerStates& layers, const SequenceState& freed);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_FREED_STATE_H_
