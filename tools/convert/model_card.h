// The README.md of a model directory: what the model is, what it was made from, how to serve it.
#ifndef HIPPODROME_TOOLS_CONVERT_MODEL_CARD_H_
#define HIPPODROME_TOOLS_CONVERT_MODEL_CARD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "tools/convert/staged_directory.h"

namespace hippodrome {

inline constexpr char kModelCardFile[] = "README.md";

struct ModelCard {
  std::string config_json;  // a whole config.json
  int64_t parameters = 0;
  DType weights = DType::kF32;  // of the matrices
  // Markdown: what it was made from. No folders of this machine and no times: outputs are the same
  // for the same inputs.
  std::string origin;
  std::string serve;  // a command, run in the directory
};

// How a directory that `serve` loads is served.
inline constexpr char kServeHere[] = "hippodrome serve --model model=.";

// The text of the file. Errors: of parsing the config.
absl::StatusOr<std::string> ModelCardText(const ModelCard& card);

// "`FILE`": the last part of a path, as card text.
std::string CardFileName(const std::string& path);

// The README.md that a person wrote in `directory`, which who saves a model there keeps in place of
// a card. A file is a person's if its first line is not that of ModelCardText(), which says so.
// Errors: kInvalidArgument for a file that cannot be read or has more than 16 MiB.
absl::StatusOr<std::optional<std::string>> ReadOwnReadme(const std::string& directory);

// Adds a README.md of the text `card` to the files of `staged`, but not where `target`, their
// directory, has one of a person. Errors: those of ReadOwnReadme() and of writing.
absl::Status AddModelCard(const std::string& card, const std::string& target,
                          StagedDirectory& staged);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_MODEL_CARD_H_
