#include "tools/convert/convert_command.h"

#include <algorithm>
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

const CommandSpec kConvertSpec = {
    .name = "convert",
    .summary = "Makes a model directory from a published checkpoint.",
    .usage = {"SRC --out DIR [OPTION]..."},
    .description = "Pickles are parsed, never executed.",
    .arguments =
        {{"SRC",
          "H3 or BiGS checkpoint: .pt or .bin (zip or legacy, Lightning), .safetensors, Flax "
          ".msgpack, the .index.json of several such files, or a directory that has one of these: "
          "the first of model.safetensors, pytorch_model.bin, flax_model.msgpack and model.pt"}},
    .options = {
        {"out", "DIR", "model directory to write"},
        {"config", "FILE", "config.json (default: the one beside SRC, if any)"},
        {"preset", H3PresetNames() + "|" + BigsPresetNames(), "a published model's configuration"},
        {"tokenizer", "DIR",
         "H3: vocab.json and merges.txt, or gpt2-encoder.json and gpt2-vocab.bpe; BiGS: vocab.txt "
         "or bert-base-uncased-vocab.txt (default: SRC, if that is a directory with a tokenizer)"},
        {"dtype", "f32|bf16|int8|int4",
         "type of the matrices; int8 and int4: integers with scales, see docs/file-formats.md",
         "f32"},
        {"attn-heads", "N", "attention heads, where neither config nor preset says"},
        {"layer-gelu", "erf|tanh",
         "BiGS: GELU of the layers (default: as the config says, else tanh for .msgpack and erf "
         "for "
         "others)"},
        {"pad-to", "N|none",
         "BiGS: tokens that inputs are padded to (default: as the config says, else the longest)"},
    }};

// The options of BiGS models.
absl::Status ReadEncoderOptions(const CommandLine& arguments, ConvertOptions& options) {
  if (arguments.Has("layer-gelu")) {
    HIPPODROME_ASSIGN_OR_RETURN(options.layer_gelu, arguments.Choice("layer-gelu"));
  }
  if (!arguments.Has("pad-to")) return absl::OkStatus();
  if (arguments.Text("pad-to") == "none") {
    options.pad_to = 0;
    return absl::OkStatus();
  }
  HIPPODROME_ASSIGN_OR_RETURN(options.pad_to, arguments.Integer("pad-to", 1, 1 << 20));
  return absl::OkStatus();
}

absl::StatusOr<ConvertOptions> ReadOptions(const CommandLine& arguments) {
  ConvertOptions options;
  options.source = arguments.positional()[0];
  HIPPODROME_ASSIGN_OR_RETURN(options.out, arguments.Required("out"));
  options.config = arguments.Text("config");
  if (arguments.Has("preset")) {
    HIPPODROME_ASSIGN_OR_RETURN(options.preset, arguments.Choice("preset"));
  }
  options.tokenizer = arguments.Text("tokenizer");
  if (!options.config.empty() && !options.preset.empty()) {
    return Usage("--config and --preset exclude each other");
  }
  HIPPODROME_RETURN_IF_ERROR(ReadEncoderOptions(arguments, options));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string dtype, arguments.Choice("dtype"));
  options.matrix_dtype = *std::ranges::find(kWeightTypes, dtype, WeightsName);
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
  if (result->source_path != options.source) {
    std::printf("checkpoint: %s\n", result->source_path.c_str());
  }
  if (!result->config_path.empty()) {
    std::printf("configuration: %s\n", result->config_path.c_str());
  }
  std::printf("wrote %s: %s, %lld parameters\n", options.out.c_str(), result->model.c_str(),
              static_cast<long long>(result->parameters));
  return absl::OkStatus();
}

}  // namespace

int ConvertCommand(int argc, char** argv) { return RunCommand(argc, argv, kConvertSpec, Run); }

}  // namespace hippodrome
