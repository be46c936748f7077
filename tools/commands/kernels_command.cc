#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "engine/models/h3/state_space.h"
#include "kernels/make_backend.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/text_file.h"
#include "tools/commands/commands.h"
#include "tools/plots/bigs_figures.h"
#include "tools/plots/encoder_kernels.h"
#include "tools/plots/h3_kernel_plot.h"
#include "tools/plots/h3_kernels.h"

namespace hippodrome {
namespace {

const CommandSpec kKernelsSpec = {
    .name = "kernels",
    .summary = "Writes or draws the convolution kernels of a model.",
    .usage = {"--model DIR --length L --output FILE"},
    .description =
        "Language models: for each H3 layer i layer{i}.diag [H, L] and layer{i}.shift [d, L].\n"
        "Encoders: kernels [layers, 2, L], forward and backward (with H > 1 heads [layers, 2, H, "
        "L]), "
        "without D; drawn, all layers near the token and over all relative positions.",
    .options = {ModelOption(),
                {"length", "L", "tokens that the kernels reach"},
                {"output", "FILE", "what to write: .safetensors, .csv, or .svg to draw"}}};

absl::Status WriteSafetensors(const std::vector<H3LayerKernels>& layers, int64_t length,
                              const std::string& path) {
  std::vector<TensorSpec> specs;
  for (const H3LayerKernels& layer : layers) {
    const std::string prefix = "layer" + std::to_string(layer.layer);
    specs.push_back({prefix + ".diag", DType::kF32, {layer.heads, length}});
    specs.push_back({prefix + ".shift", DType::kF32, {layer.d_model, length}});
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer, SafetensorsWriter::Create(path, specs));
  for (const H3LayerKernels& layer : layers) {
    HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(layer.diagonal))));
    HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(layer.shift))));
  }
  return writer->Finish();
}

// Enough digits to give the same float again.
std::string Digits(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

// One line per kernel: layer, kind, row, then the values.
class CsvLines {
 public:
  explicit CsvLines(int64_t length) : length_(length) {
    text_ = "layer,kind,row";
    for (int64_t l = 0; l < length; ++l) text_ += "," + std::to_string(l);
    text_ += "\n";
  }
  // values: [rows, length].
  void Append(int64_t layer, const char* kind, std::span<const float> values) {
    for (size_t row = 0; row * length_ < values.size(); ++row) {
      text_ += std::to_string(layer) + "," + kind + "," + std::to_string(row);
      for (int64_t l = 0; l < length_; ++l) text_ += "," + Digits(values[row * length_ + l]);
      text_ += "\n";
    }
  }
  const std::string& text() const { return text_; }

 private:
  int64_t length_;
  std::string text_;
};

std::string Csv(const std::vector<H3LayerKernels>& layers, int64_t length) {
  CsvLines lines(length);
  for (const H3LayerKernels& layer : layers) {
    lines.Append(layer.layer, "diag", layer.diagonal);
    lines.Append(layer.layer, "shift", layer.shift);
  }
  return lines.text();
}

std::string Csv(const EncoderKernels& kernels) {
  CsvLines lines(kernels.length);
  const int64_t size = kernels.heads * kernels.length;
  const auto values = std::span(kernels.values);
  for (int64_t layer = 0; layer < kernels.layers; ++layer) {
    lines.Append(layer, "forward", values.subspan(2 * layer * size, size));
    lines.Append(layer, "backward", values.subspan((2 * layer + 1) * size, size));
  }
  return lines.text();
}

absl::Status WriteSafetensors(const EncoderKernels& kernels, const std::string& path) {
  TensorSpec spec{.name = "kernels", .shape = {kernels.layers, 2, kernels.length}};
  if (kernels.heads > 1) spec.shape.insert(spec.shape.begin() + 2, kernels.heads);
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer, SafetensorsWriter::Create(path, {spec}));
  HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(kernels.values))));
  return writer->Finish();
}

absl::Status UnknownFormat(const std::string& output) {
  return Usage("--output is '" + output + "', expected a name in .safetensors, .csv or .svg");
}

absl::Status WriteLanguageModel(const std::string& directory, int64_t length,
                                const std::string& output) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<H3LayerKernels> layers,
                              ReadH3Kernels(directory, length));
  if (output.ends_with(".safetensors")) return WriteSafetensors(layers, length, output);
  if (output.ends_with(".csv")) return WriteTextFile(output, Csv(layers, length));
  if (output.ends_with(".svg")) return WriteTextFile(output, PlotH3Kernels(layers, length));
  return UnknownFormat(output);
}

absl::Status WriteEncoder(const std::string& directory, int64_t length, const std::string& output) {
  HIPPODROME_ASSIGN_OR_RETURN(const EncoderKernels kernels, ReadEncoderKernels(directory, length));
  if (output.ends_with(".safetensors")) return WriteSafetensors(kernels, output);
  if (output.ends_with(".csv")) return WriteTextFile(output, Csv(kernels));
  if (output.ends_with(".svg")) return WriteTextFile(output, PlotBigsFigures(kernels));
  return UnknownFormat(output);
}

absl::Status WriteKernels(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string output, line.Required("output"));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t length, line.Integer("length", 1, 1 << 20));
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(directory));
  return family == ModelFamily::kBigs ? WriteEncoder(directory, length, output)
                                      : WriteLanguageModel(directory, length, output);
}

}  // namespace

int KernelsCommand(int argc, char** argv) {
  return RunCommand(argc, argv, kKernelsSpec, WriteKernels);
}

}  // namespace hippodrome
