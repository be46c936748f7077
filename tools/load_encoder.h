// An encoder as it lies on disk, for commands that give it token ids.
#ifndef HIPPODROME_TOOLS_LOAD_ENCODER_H_
#define HIPPODROME_TOOLS_LOAD_ENCODER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/models/bigs.h"
#include "kernels/backend.h"

namespace hippodrome {

// The model of LoadEncoderDirectory(), without the tokenizer. `backend` must outlive it.
absl::StatusOr<std::unique_ptr<Bigs>> LoadEncoder(Backend& backend, const std::string& directory,
                                                  std::optional<DType> weights);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LOAD_ENCODER_H_
