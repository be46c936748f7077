#include "tools/convert/convert_command.h"

#include <cstdio>
#include <string>

#include "engine/status.h"
#include "tools/command_line.h"
#include "tools/convert/convert.h"
#include "tools/convert/h3_presets.h"
#include "tools/progress.h"

namespace hippodrome {
namespace {

CommandSpec Spec() {
  return {.usage =
              "usage: hippodrome convert SRC --out DIR [options]\n"
              "  SRC               H3 checkpoint: .pt (zip or legacy, Lightning) or "
              ".safetensors\n"
              "  --out DIR         model directory to write\n"
              "  --config FILE     config.json (default: the one beside SRC, if any)\n"
              "  --preset NAME     " +
              H3PresetNames() +
              "\n"
              "  --tokenizer DIR   vocab.json and merges.txt, or gpt2-encoder.json and "
              "gpt2-vocab.bpe\n"
              "  --dtype f32|bf16  of matrices (default f32)\n"
              "  --attn-heads N    attention heads, when neither config nor preset says\n",
          .values = {"out", "config", "preset", "tokenizer", "dtype", "attn-heads"},
          .positional = 1};
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
  if (!options.preset.empty()) {
    const absl::Status known = H3Preset(options.preset).status();
    if (!known.ok()) return Usage(Message(known));
  }
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
  std::printf("wrote %s: %lld layers, d_model %lld, %lld parameters\n", options.out.c_str(),
              static_cast<long long>(result->config.n_layer),
              static_cast<long long>(result->config.d_model),
              static_cast<long long>(result->parameters));
  return absl::OkStatus();
}

}  // namespace

int ConvertCommand(int argc, char** argv) { return RunCommand(argc, argv, Spec(), Run); }

}  // namespace hippodrome
