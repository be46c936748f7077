// A Flax checkpoint: the file that flax.serialization writes for a tree of arrays.
//
// Format: MessagePack maps with string keys, one inside the other; each array is an extension of
// type 1, whose payload is the MessagePack array (shape, name of the type, bytes in C order).
#ifndef HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_CHECKPOINT_H_
#define HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "tools/convert/checkpoint_source.h"

namespace hippodrome {

// The type of the extension that is an array.
inline constexpr int8_t kFlaxArray = 1;

// "float32" and so on. REQUIRES: F32, F16, BF16 or F64.
std::string FlaxType(DType dtype);

// The keys on the way to an array, joined by '/', are its name. Arrays are read when they are asked
// for. At most 65536 keys, 32 levels, names of 512 bytes. Errors (without the path):
// kInvalidArgument naming the array or the position, what was found and what was expected; so for
// arrays of more than 2^30 bytes, which Flax stores in chunks.
absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenFlaxCheckpoint(const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_FLAX_FLAX_CHECKPOINT_H_
