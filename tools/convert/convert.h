// Makes a model directory from a published H3 checkpoint.
#ifndef HIPPODROME_TOOLS_CONVERT_CONVERT_H_
#define HIPPODROME_TOOLS_CONVERT_CONVERT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/config.h"
#include "kernels/dtype.h"

namespace hippodrome {

struct ConvertOptions {
  std::string source;                // .pt (zip or legacy, Lightning) or .safetensors
  std::string out;                   // directory
  std::string config;                // a config.json, or empty: the one beside `source`, if any
  std::string preset;                // see H3Preset(), or empty; excludes `config`
  std::string tokenizer;             // directory, or empty
  DType matrix_dtype = DType::kF32;  // or kBF16: of linear weights and the word embedding
  int64_t attention_heads = 0;       // 0: from config or preset
};

struct ConvertResult {
  H3Config config;
  std::string config_path;  // the config.json that was used, or empty
  int64_t parameters = 0;
};

// Called with bytes written so far and in all.
using ConvertProgress = std::function<void(int64_t done, int64_t total)>;

// Writes out/config.json, out/model.safetensors and the tokenizer's files; they appear when all are
// complete. The source is checked in full (names, shapes, sizes) before anything is written, and
// streamed through buffers of under 64 MiB. Errors: one line that says what, where and what was
// expected.
absl::StatusOr<ConvertResult> Convert(const ConvertOptions& options,
                                      const ConvertProgress& progress);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_CONVERT_H_
