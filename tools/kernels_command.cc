#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/config.h"
#include "engine/models/state_space.h"
#include "engine/status.h"
#include "kernels/make_backend.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/kernel_plot.h"
#include "tools/layer_kernels.h"
#include "tools/text_file.h"

namespace hippodrome {
namespace {

const CommandSpec kSpec = {
    .usage =
        "usage: hippodrome kernels --model DIR --length L --output OUT.(safetensors|csv|svg)\n"
        "Writes, per H3 layer i, layer{i}.diag [H, L] and layer{i}.shift [d, L].",
    .values = {"model", "length", "output"}};

absl::Status WriteSafetensors(const std::vector<LayerKernels>& layers, int64_t length,
                              const std::string& path) {
  std::vector<TensorSpec> specs;
  for (const LayerKernels& layer : layers) {
    const std::string prefix = "layer" + std::to_string(layer.layer);
    specs.push_back({prefix + ".diag", DType::kF32, {layer.heads, length}});
    specs.push_back({prefix + ".shift", DType::kF32, {layer.d_model, length}});
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer, SafetensorsWriter::Create(path, specs));
  for (const LayerKernels& layer : layers) {
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
std::string Csv(const std::vector<LayerKernels>& layers, int64_t length) {
  std::string text = "layer,kind,row";
  for (int64_t l = 0; l < length; ++l) text += "," + std::to_string(l);
  text += "\n";
  const auto append = [&](int64_t layer, const char* kind, const std::vector<float>& values) {
    for (size_t row = 0; row * length < values.size(); ++row) {
      text += std::to_string(layer) + "," + kind + "," + std::to_string(row);
      for (int64_t l = 0; l < length; ++l) text += "," + Digits(values[row * length + l]);
      text += "\n";
    }
  };
  for (const LayerKernels& layer : layers) {
    append(layer.layer, "diag", layer.diagonal);
    append(layer.layer, "shift", layer.shift);
  }
  return text;
}

absl::Status WriteKernels(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string output, line.Required("output"));
  HIPPODROME_RETURN_IF_ERROR(line.Required("length").status());
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t length, line.Integer("length", 0, 1, 1 << 20));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<LayerKernels> layers,
                              ReadLayerKernels(directory, length));
  if (output.ends_with(".safetensors")) return WriteSafetensors(layers, length, output);
  if (output.ends_with(".csv")) return WriteTextFile(output, Csv(layers, length));
  if (output.ends_with(".svg")) return WriteTextFile(output, PlotKernels(layers, length));
  return Usage("--output is '" + output + "', expected a name in .safetensors, .csv or .svg");
}

}  // namespace

int KernelsCommand(int argc, char** argv) { return RunCommand(argc, argv, kSpec, WriteKernels); }

}  // namespace hippodrome
