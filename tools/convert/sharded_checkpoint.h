// A checkpoint in several files, as Hugging Face's libraries write large ones.
//
// Format of the index, which lies beside them: {"metadata": {..}, "weight_map": {"name of a
// tensor": "name of a file", ..}}.
#ifndef HIPPODROME_TOOLS_CONVERT_SHARDED_CHECKPOINT_H_
#define HIPPODROME_TOOLS_CONVERT_SHARDED_CHECKPOINT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/convert/checkpoint_source.h"

namespace hippodrome {

// How the names of indexes end.
inline constexpr char kIndexSuffix[] = ".index.json";

// Opens all files that the index at `path` names: plain names of at most 128 files in its folder,
// each a checkpoint of its own. Index and files must agree: each tensor lies in one file, the one
// that the index says. Errors (without the path): kInvalidArgument naming the tensor or the file,
// and what was expected; kNotFound for a file that is missing; those of OpenCheckpoint() for one.
absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenShardedCheckpoint(const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_SHARDED_CHECKPOINT_H_
