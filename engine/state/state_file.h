// A saved state as bytes that any language reads: a safetensors file.
//
// Tensors: layers.{i}.{array} F32 of the shape that StateLayout says (of H3 layers shift_inputs
// [d, N], modes [h_1, h_2, H, M, 2], and pending [P, h_1, h_2, H] where P tokens are pending);
// layers.{i}.keys and layers.{i}.values F32 [position - first_row, d] of attention layers; tokens
// I32 [position], which may be left out. BF16 in place of F32 in a file that is labelled lossy.
// Where there are checkpoints: checkpoints.{j}.layers.{i}.{array}, as those.
//
// Metadata: format, version, model, arithmetic, position, seed, created; last_token where there is
// one; first_row, the position of the first row of keys and values, where an attention window has
// dropped those before it; prompt_tokens where there are any; lossy ("true") where it is; exact
// ("false") where it is not; checkpoints, their positions, as "64 128", where there are any;
// pending_text, in hexadecimal, where there is some;
// checksum; signature, where its writer had a key.
//
// checksum is the XXH3 of 128 bits, and signature an authentication code, of everything else in
// one order: for each other entry of the metadata, by name, "BYTES NAME BYTES VALUE\n", BYTES being
// the length of what follows; then for each tensor, by name, "BYTES NAME DTYPE SHAPE\n", SHAPE as
// "[2, 3]", and its data. How the header is written does not matter.
#ifndef HIPPODROME_ENGINE_STATE_STATE_FILE_H_
#define HIPPODROME_ENGINE_STATE_STATE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/state/saved_state.h"

namespace hippodrome {

// The code, as text, that proves that bytes come from who has a key: parts are to be read as one.
using StateSigner = std::function<std::string(std::span<const std::span<const std::byte>> parts)>;

struct StateFileOptions {
  bool lossy = false;     // round to bf16: half the size
  bool tokens = true;     // write the ids
  StateSigner sign = {};  // may be null
  // The oldest checkpoints are left out of a file that would have more; all else is written.
  size_t most_bytes = SIZE_MAX;
};

// The file of `state`. Errors: those of CheckState(), kInvalidArgument for a number that is not
// finite, or is not as bf16.
absl::StatusOr<std::string> WriteStateFile(const SavedState& state, const StateLayout& layout,
                                           const StateFileOptions& options = {});

struct StateFileLimits {
  size_t most_bytes = SIZE_MAX;
  StateSigner sign = {};  // where it is not null, a file must have the signature that it gives
};

// The state in the bytes of a file. Refuses, naming the field, with kFailedPrecondition another
// model, with kInvalidArgument more bytes than the limit, another format or version, a wrong
// checksum or signature, tensors, dtypes or shapes that the model does not have, a position that
// does not match the rows, ids that do not exist and numbers that are not finite. Takes memory in
// proportion to `bytes`, and none for tensors before they were checked.
absl::StatusOr<SavedState> ReadStateFile(std::string_view bytes, const StateLayout& layout,
                                         const StateFileLimits& limits = {});

// Whether the metadata of a safetensors file say that it is a state, of whatever version.
bool HasStateFormat(const std::map<std::string, std::string>& metadata);

// What a file says of itself.
struct StateFileSummary {
  std::string model, arithmetic;
  bool lossy = false;
  bool exact = true;
  int64_t position = 0;
  int64_t first_row = 0;
  int64_t prompt_tokens = 0;
  std::optional<int32_t> last_token;
  uint64_t seed = 0;
  int64_t created = 0;               // Unix seconds
  std::vector<int64_t> checkpoints;  // their positions
  std::string pending_text;
  std::string checksum, signature;
  std::vector<TensorSpec> tensors;  // by name
};

// That of an undamaged file, for whoever does not have its model. Errors: kInvalidArgument, naming
// the field, for what is no state file, is of another version, or has another checksum.
absl::StatusOr<StateFileSummary> SummarizeStateFile(std::string_view bytes);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_STATE_STATE_FILE_H_
