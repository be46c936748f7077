#include "tools/convert/convert_command.h"

#include <cstdio>
#include <string>

#include "engine/base/status.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/progress.h"
#include "tools/convert/convert.h"
#include "tools/convert/models/bigs_presets.h"
#include "tools/convert/models/h3_presets.h"

namespace hippodrome {
namespace {

CommandSpec Spec() {
  return {.usage =
              "usage: hippodrome convert SRC --out DIR [options]\n"
              "  SRC               H3 or BiGS checkpoint: .pt or .bin (zip or legacy, Lightning),\n"
              "                    .safetensors, or Flax .msgpack\n"
              "  --out DIR         model directory to write\n"
              "  --config FILE     config.json (default: the one beside SRC, if any)\n"
              "  --preset NAME     " +
              H3PresetNames() + "|\n                    " + BigsPresetNames() +
              "\n"
              "  --tokenizer DIR   H3: vocab.json and merges.txt, or gpt2-encoder.json and\n"
              "                    gpt2-vocab.bpe; BiGS: vocab.txt or bert-base-uncased-vocab.txt\n"
              "  --dtype f32|bf16  of matrices (default f32)\n"
              "  --attn-heads N    attention heads, when neither config nor preset says\n"
              "of BiGS, in place of what the config says:\n"
              "  --layer-gelu erf|tanh  GELU of the layers (default: tanh for .msgpack, else erf)\n"
              "  --pad-to N|none        length to which inputs are padded (default: the longest)\n",
          .values = {"out", "config", "preset", "tokenizer", "dtype", "attn-heads", "layer-gelu",
                     "pad-to"},
          .positional = 1};
}

absl::Status CheckPreset(const std::string& name) {
  if (name.empty() || H3Preset(name).ok() || BigsPreset(name).ok()) return absl::OkStatus();
  return Usage("unknown preset '" + name + "'; expected " + H3PresetNames() + "|" +
               BigsPresetNames());
}

// The options of BiGS models.
absl::Status ReadEncoderOptions(const CommandLine& arguments, ConvertOptions& options) {
  options.layer_gelu = arguments.Text("layer-gelu", "");
  if (arguments.Has("layer-gelu") && options.layer_gelu != "erf" && options.layer_gelu != "tanh") {
    return Usage("--layer-gelu is '" + options.layer_gelu + "'; expected erf or tanh");
  }
  if (!arguments.Has("pad-to")) return absl::OkStatus();
  if (arguments.Text("pad-to", "") == "none") {
    options.pad_to = 0;
    return absl::OkStatus();
  }
  HIPPODROME_ASSIGN_OR_RETURN(options.pad_to, arguments.Integer("pad-to", 0, 1, 1 << 20));
  return absl::OkStatus();
}

absl::StatusOr<ConvertOptions> ReadOptions(const CommandLine& arguments) {
  ConvertOptions options;
  options.source = arguments.positional()[0];
  HIPPODROME_ASSIGN_OR_RETURN(options.out, arguments.Required("out"));
  options.config = arguments.Text("config", "");
  options.preset = arguments.Text("preset", "");
  options.tokenizer = arguments.Text("tokenizer", "");
  if (!options.config.empty() && !options.preset.empty()) {
    return Usage("--config and --preset exclude each other");
  }
  HIPPODROME_RETURN_IF_ERROR(CheckPreset(options.preset));
  HIPPODROME_RETURN_IF_ERROR(ReadEncoderOptions(arguments, options));
  const std::string dtype = arguments.Text("dtype", "f32");
  if (dtype != "f32" && dtype != "bf16") {
    return Usage("--dtype is '" + dtype + "'; expected f32 or bf16");
  }
  options.matrix_dtype = dtype == "bf16" ? DType::kBF16 : DType::kF32;
  HIPPODROME_ASSIGN_OR_RETURN(options.attention_heads,
                              arguments.Integer("attn-heads", 0, 1, 1 << 16));
  return options;
}

absl::Status Run(const CommandLine& arguments) {
  HIPPODROME_ASSIGN_OR_RETURN(const ConvertOptions options, ReadOptions(arguments));
  absl::StatusOr<ConvertResult> result;
  {
    Progress progress("converting");
    result = Convert(options, [&](int64_t done, int64_t total) { progress.Update(done, total); });
  }
  if (!result.ok()) return result.status();
  if (!result->config_path.empty()) {
    std::printf("configuration: %s\n", result->config_path.c_str());
  }
  std::printf("wrote %s: %s, %lld parameters\n", options.out.c_str(), result->model.c_str(),
              static_cast<long long>(result->parameters));
  return absl::OkStatus();
}

}  // namespace

int ConvertCommand(int argc, char** argv) { return RunCommand(argc, argv, Spec(), Run); }

}  // namespace hippodrome
