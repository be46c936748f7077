#include "tools/limits/flops.h"

#include <fmt/format.h>

#include <cmath>

namespace hippodrome {
namespace {

// Elements of the matrices of one layer.
double LayerMatrixElements(const BigsConfig& config) {
  const auto d = static_cast<double>(config.hidden_size);
  const auto inner = static_cast<double>(config.intermediate_size);
  const double projections = config.block == EncoderBlock::kGated ? 3 : 2;  // dv, dol, do; fc1, fc2
  return 4 * d * d + projections * inner * d;
}

// Of one layer and channel.
double Mixing(EncoderRouting routing, double length) {
  if (routing == EncoderRouting::kAttention) return 4 * length * length;
  const double points = 2 * length;
  const double fft = 2.5 * points * std::log2(points);
  return 2 * (2 * fft + 6 * (length + 1));
}

}  // namespace

EncoderFlops CountFlops(const BigsConfig& config, int64_t length) {
  const auto layers = static_cast<double>(config.num_hidden_layers);
  const auto tokens = static_cast<double>(length);
  const auto d = static_cast<double>(config.hidden_size);
  return {.matrices = 2 * layers * LayerMatrixElements(config) * tokens,
          .mixing = layers * d * Mixing(config.routing, tokens)};
}

BigsConfig BertLarge() {
  BigsConfig config;
  config.hidden_size = 1024;
  config.intermediate_size = 4096;
  config.num_hidden_layers = 24;
  config.block = EncoderBlock::kStack;
  config.routing = EncoderRouting::kAttention;
  config.num_attention_heads = 16;
  config.pad_to = config.max_position_embeddings;
  return config;
}

std::string PaperNotation(double value) {
  const int exponent = static_cast<int>(std::floor(std::log10(value)));
  std::string digits = fmt::format("{:.1f}", value / std::pow(10.0, exponent));
  if (digits == "10.0") return fmt::format("1.0E{}", exponent + 1);
  return digits + fmt::format("E{}", exponent);
}

}  // namespace hippodrome
