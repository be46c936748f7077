// Opens the decoder that a command evaluates.
#ifndef HIPPODROME_TOOLS_EVALUATE_OPEN_DECODER_H_
#define HIPPODROME_TOOLS_EVALUATE_OPEN_DECODER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/model_directory.h"
#include "kernels/backend.h"
#include "tools/command_line/command_line.h"

namespace hippodrome {

struct OpenedDecoder {
  std::unique_ptr<Backend> backend;  // outlives the model
  LoadedDecoder decoder;
};

// The model in `directory` with --weights, --device, --threads, --pin and --numa-node of `line`.
// Errors: of the options, and of loading it.
absl::StatusOr<OpenedDecoder> OpenDecoder(const CommandLine& line, const std::string& directory);
// The same for tasks of text. kFailedPrecondition where it has no tokenizer.
absl::StatusOr<OpenedDecoder> OpenTextDecoder(const CommandLine& line,
                                              const std::string& directory);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_OPEN_DECODER_H_
