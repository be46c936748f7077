// Makes a model directory from a published checkpoint.
#ifndef HIPPODROME_TOOLS_CONVERT_CONVERT_H_
#define HIPPODROME_TOOLS_CONVERT_CONVERT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"

namespace hippodrome {

struct ConvertOptions {
  std::string source;     // see OpenCheckpoint()
  std::string out;        // directory
  std::string config;     // a config.json, or empty: the one beside the file, if any
  std::string preset;     // see H3Preset() and BigsPreset(), or empty; excludes `config`
  std::string tokenizer;  // directory, or empty: `source`, if that is one with a tokenizer
  DType matrix_dtype = DType::kF32;  // of kWeightTypes: of linear weights and the word embedding
  int64_t attention_heads = 0;       // 0: from config or preset
  // Of BiGS models only. Given, they go before the config.
  std::string layer_gelu;         // "erf" or "tanh"; empty: from the config, else by the source
  std::optional<int64_t> pad_to;  // 0: not at all; none: from the config, else the longest input
};

struct ConvertResult {
  std::string source_path;  // the file of FindCheckpoint()
  std::string config_path;  // the config.json that was used, or empty
  std::string model;        // what it is: "12 layers, d_model 768"
  int64_t parameters = 0;
};

// Called with bytes written so far and in all.
using ConvertProgress = std::function<void(int64_t done, int64_t total)>;

// Writes out/config.json, out/model.safetensors, the tokenizer's files and a model card,
// out/README.md, unless a person wrote one; they appear when all are complete. The family (H3 or
// BiGS) is that of the preset or the config, else the tensors' names tell it. The source is checked
// in full (names, shapes, sizes) before anything is written, and streamed through buffers of under
// 64 MiB. Errors: one line that says what, where and what was expected.
absl::StatusOr<ConvertResult> Convert(const ConvertOptions& options,
                                      const ConvertProgress& progress);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_CONVERT_H_
