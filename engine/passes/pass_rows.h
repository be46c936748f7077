// What goes through a pass over the weights.
#ifndef HIPPODROME_ENGINE_PASSES_PASS_ROWS_H_
#define HIPPODROME_ENGINE_PASSES_PASS_ROWS_H_

#include <cstdint>
#include <span>

#include "engine/state/decode_state.h"

namespace hippodrome {

// Where the state of a sequence is copied on its way.
struct PrefillCapture {
  int64_t position = 0;  // tokens of the sequence before it; see FitsCapture()
  int64_t slot = 0;      // which gets the state of every layer
};

// Some tokens of a prompt, and the state of its sequence.
struct PrefillPart {
  std::span<const int32_t> tokens;                // ids in [0, padded V)
  int64_t start = 0;                              // position of the first one, 0 for an empty state
  const SequenceState* sequence = nullptr;        // DecodeState::Slide() brought it to `start`
  std::span<const PrefillCapture> captures = {};  // ascending
};

// The next token of one sequence, or one of several in a row, side by side: all in one block of
// DecodeState::rewind_block() tokens.
struct StepToken {
  int32_t token = 0;                        // in [0, padded V)
  int64_t position = 0;                     // tokens of the sequence before it
  const SequenceState* sequence = nullptr;  // DecodeState::Slide() brought it to `position`
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_PASSES_PASS_ROWS_H_
