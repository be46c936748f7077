#include "tools/load_encoder.h"

#include <utility>

#include "engine/model_directory.h"
#include "engine/status.h"

namespace hippodrome {

absl::StatusOr<std::unique_ptr<Bigs>> LoadEncoder(Backend& backend, const std::string& directory,
                                                  std::optional<DType> weights) {
  HIPPODROME_ASSIGN_OR_RETURN(LoadedEncoder loaded,
                              LoadEncoderDirectory(backend, directory, weights));
  return std::move(loaded.model);
}

}  // namespace hippodrome
