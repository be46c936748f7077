// Writes a model directory in the layout of the published code: the reverse of Convert().
#ifndef HIPPODROME_TOOLS_CONVERT_EXPORT_H_
#define HIPPODROME_TOOLS_CONVERT_EXPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/convert/convert.h"

namespace hippodrome {

enum class ExportFormat : uint8_t {
  kTorch,        // "torch", of H3: a state_dict in a file
  kHuggingFace,  // "huggingface", of BiGS: a directory with config.json and pytorch_model.bin
  kFlax,         // "flax", of BiGS: a directory with config.json and flax_model.msgpack
};
inline constexpr ExportFormat kExportFormats[] = {ExportFormat::kTorch, ExportFormat::kHuggingFace,
                                                  ExportFormat::kFlax};
// The word above.
const char* Name(ExportFormat format);

struct ExportOptions {
  std::string model;  // directory
  ExportFormat format = ExportFormat::kTorch;
  // A file, or a directory, which gets vocab.txt too where the model has one, and a model card
  // where no person wrote README.md.
  std::string out;
};

struct ExportResult {
  int64_t tensors = 0;  // tied ones count twice
  int64_t bytes = 0;    // of the model's data
};

// Names, shapes and types of tensors are those of the published code, with tied weights and
// constants; each value stays as the model has it, also in bf16, so that Convert() gives the same
// model again. Files appear when all are complete. The output is the same for the same directory.
// Errors: one line that says what, where and what was expected; so for a format of the other
// family, for weights in integers, and for models that no published code has.
absl::StatusOr<ExportResult> Export(const ExportOptions& options, const ConvertProgress& progress);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_EXPORT_H_
