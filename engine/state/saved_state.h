// The state of one sequence as a value: in host memory, in the layout that all backends exchange.
#ifndef HIPPODROME_ENGINE_STATE_SAVED_STATE_H_
#define HIPPODROME_ENGINE_STATE_SAVED_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/backend.h"

namespace hippodrome {

// What a layer's recurrent state exports, in its order; none for attention layers.
using LayerArrays = std::vector<std::vector<float>>;

struct SavedLayer {
  LayerArrays arrays;
  // [position - first_row, d] each, keys as attention takes them; empty for recurrent layers.
  std::vector<float> keys, values;

  bool operator==(const SavedLayer&) const = default;
};

// What a state was at an earlier position, but for the rows of attention layers: those are the
// first of the state's own. Copies share the arrays, which never change.
struct Checkpoint {
  int64_t position = 0;                                    // tokens before it
  std::shared_ptr<const std::vector<LayerArrays>> layers;  // by layer

  bool operator==(const Checkpoint& other) const {
    return position == other.position && *layers == *other.layers;
  }
};
// Of one state, at most.
inline constexpr int64_t kMaxCheckpoints = 64;

// Of SavedState::pending_text: a stop string of 256 bytes but its last one, and three bytes of a
// character.
inline constexpr size_t kMaxPendingText = 258;

// Everything that the next token depends on but for what a request says: a model and this go on as
// if nothing had happened in between, with the same bits where `arithmetic` is the same and nothing
// is `lossy`, else within the error bounds.
struct SavedState {
  std::string model;                  // HybridH3::fingerprint()
  std::string arithmetic;             // Arithmetic() of what computed it
  bool lossy = false;                 // was rounded to bf16 on its way
  bool exact = true;                  // has the bits of one piece, but for being lossy now
  int64_t position = 0;               // tokens that are in the state
  int64_t first_row = 0;              // > 0: keys and values of tokens before it were dropped
  std::vector<int32_t> tokens;        // those, or empty where left out
  int64_t prompt_tokens = 0;          // of those, before the first that penalties count as new
  std::optional<int32_t> last_token;  // given out, not yet in the state
  uint64_t seed = 0;                  // of the sampler
  int64_t created = 0;                // Unix seconds
  // Bytes that end the text of the tokens and were not given out: what may become a stop string,
  // and a character that is incomplete. The text of the next token follows them.
  std::string pending_text = {};
  std::vector<SavedLayer> layers;
  // Ascending, in [1, position); none where rows were dropped.
  std::vector<Checkpoint> checkpoints = {};

  bool operator==(const SavedState&) const = default;
};

// Whether what goes on from `state` by `arithmetic` has the bits of one piece.
bool GoesOnExactly(const SavedState& state, const std::string& arithmetic);

// Those of the numbers: arrays, rows, tokens and checkpoints.
int64_t BytesOf(const SavedState& state);
int64_t BytesOf(const Checkpoint& checkpoint);

// What a saved state of a layer holds.
struct LayerLayout {
  std::vector<StateArray> arrays;
  int64_t row_width = 0;  // d of attention layers, else 0
};

// What saved states of a model look like.
struct StateLayout {
  std::string model;       // HybridH3::fingerprint()
  int64_t vocab_size = 0;  // ids are below it
  int64_t longest = 0;     // most tokens of a sequence; 0: no limit of its own
  int64_t window = 0;      // of attention, see AttentionShape
  std::vector<LayerLayout> layers;
};

// OK for the fingerprint of the layout's model, else kFailedPrecondition with both.
absl::Status CheckModel(const std::string& model, const StateLayout& layout);

// OK where a model of `layout` can go on from `state`. Errors name the field: kFailedPrecondition
// for a state of another model, else kInvalidArgument. Does not look at the arrays' numbers.
absl::Status CheckState(const SavedState& state, const StateLayout& layout);

// What the names of a layer's arrays begin with: "layers.3.".
std::string LayerPrefix(size_t layer);

// What the names of a checkpoint's layers begin with: "checkpoints.0.".
std::string CheckpointPrefix(size_t checkpoint);

// Tokens that are pending in all layers; see RecurrentState::arrays().
int64_t PendingTokens(const SavedState& state, const StateLayout& layout);
int64_t PendingTokens(const Checkpoint& checkpoint, const StateLayout& layout);

// Elements of an array. REQUIRES: they fit.
int64_t Elements(const std::vector<int64_t>& shape);

// What decides about the last bits of a state: the backend, its instruction set, the dtype of
// packed matrices, the window of attention if there is one, and the dtype of H3 layers' states
// unless it is f32, as "cpu AVX3_DL bf16 window 1024 h3-state bf16".
std::string Arithmetic(const SequenceBackend& backend, DType weights, int64_t window = 0,
                       DType h3_state = DType::kF32);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_STATE_SAVED_STATE_H_
