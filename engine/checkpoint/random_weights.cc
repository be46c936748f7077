#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "engine/checkpoint/weights_source.h"

namespace hippodrome {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Value `i` of the tensor, whose last dimension has `last` elements.
using Filler = std::function<float(int64_t i, int64_t last, std::minstd_rand& random)>;

float Uniform(std::minstd_rand& random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}

// pi n for mode n.
float Harmonic(int64_t i, int64_t last, std::minstd_rand& /*random*/) {
  return std::numbers::pi_v<float> * static_cast<float>(i % last);
}

Filler FillerFor(const std::string& name) {
  struct Rule {
    const char* end;
    Filler fill;
  };
  static const Rule rules[] = {
      {"norm1.weight", [](auto...) { return 1.0f; }},
      {"norm2.weight", [](auto...) { return 1.0f; }},
      {"ln_f.weight", [](auto...) { return 1.0f; }},
      {"LayerNorm.weight", [](auto...) { return 1.0f; }},
      {"mlp_norm.weight", [](auto...) { return 1.0f; }},
      {".bias", [](auto...) { return 0.0f; }},
      {"log_dt", [](auto, auto, auto& r) { return Uniform(r, std::log(0.001f), std::log(0.1f)); }},
      {"log_step", [](auto, auto, auto& r) { return Uniform(r, std::log(0.01f), 0); }},
      {"inv_A_real", [](auto...) { return std::log(0.5f); }},
      {"A_re", [](auto...) { return -0.5f; }},
      {"A_imag", Harmonic},
      {"A_im", Harmonic},
      {"ssm_k_kernel.kernel.B",
       [](int64_t i, int64_t last, auto&) { return i % last == 0 ? 1.0f : 0.0f; }},
      {"ssm_k_kernel.kernel.C", [](auto, auto, auto& r) { return Uniform(r, -0.125f, 0.125f); }},
      {"kernel.kernel.B", [](int64_t i, auto, auto&) { return i % 2 == 0 ? 1.0f : 0.0f; }},
      {"inv_freq",
       [](int64_t i, int64_t last, auto&) {
         return std::pow(10000.0f, -static_cast<float>(i) / static_cast<float>(last));
       }},
      {"kernel.C", [](auto, auto, auto& r) { return Uniform(r, -1.2f, 1.2f); }},
      {"s4.D", [](auto...) { return 1.0f; }},
      {"D", [](auto, auto, auto& r) { return Uniform(r, -1.7f, 1.7f); }},
  };
  for (const Rule& rule : rules) {
    if (EndsWith(name, rule.end)) return rule.fill;
  }
  // Uniform with the deviation of the published normal: cheaper for the billions of matrix
  // elements.
  return [](auto, auto, auto& r) { return Uniform(r, -0.0346f, 0.0346f); };
}

}  // namespace

absl::StatusOr<TensorView> RandomWeights::Get(const std::string& name,
                                              const std::vector<int64_t>& shape) {
  TensorView tensor{.name = name, .dtype = DType::kF32, .shape = shape};
  std::vector<float>& values = values_[name];
  values.resize(tensor.elements());
  std::minstd_rand random(static_cast<uint32_t>(std::hash<std::string>()(name)));
  const Filler fill = FillerFor(name);
  for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = fill(i, shape.back(), random);
  tensor.data = std::as_bytes(std::span(values));
  return tensor;
}

}  // namespace hippodrome
