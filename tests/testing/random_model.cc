#include "tests/testing/random_model.h"

#include <cmath>
#include <numbers>
#include <random>

namespace hippodrome {
namespace {

// Not std::hash, whose values may change between libraries.
uint32_t HashName(const std::string& name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

struct Distribution {
  float mean;
  float deviation;
};

Distribution For(const std::string& name, int64_t fan_in) {
  const auto ends = [&](const char* end) { return name.ends_with(end); };
  const float scaled = 1 / std::sqrt(static_cast<float>(fan_in));
  if (ends("norm1.weight") || ends("norm2.weight") || ends("ln_f.weight")) return {1, 0.1f};
  if (ends("LayerNorm.weight") || ends("mlp_norm.weight")) return {1, 0.1f};
  if (ends("log_step")) return {-2.3f, 0.7f};
  if (ends("A_re")) return {-0.5f, 0.1f};
  if (ends("kernel.C")) return {0, 0.7f};
  if (ends(".bias")) return {0, 0.1f};
  if (ends("log_dt")) return {-4.6f, 1};
  if (ends("inv_A_real")) return {-0.7f, 0.2f};
  if (ends("ssm_k_kernel.kernel.C")) return {0, scaled};
  if (ends("kernel.kernel.C")) return {0, 0.7f};
  if (ends("word_embeddings.weight")) return {0, 1};
  if (ends("D")) return {0, 1};
  return {0, scaled};
}

// The parts of the published initialisation that are not noise.
float Offset(const std::string& name, int64_t index, int64_t last) {
  if (name.ends_with("A_imag") || name.ends_with("A_im"))
    return std::numbers::pi_v<float> * static_cast<float>(index % last);
  if (name.ends_with("ssm_k_kernel.kernel.B")) return index % last == 0 ? 1 : 0;
  if (name.ends_with("kernel.kernel.B")) return index % 2 == 0 ? 1 : 0;
  return 0;
}

}  // namespace

absl::StatusOr<TensorView> TestWeights::Get(const std::string& name,
                                            const std::vector<int64_t>& shape) {
  TensorView tensor{.name = name, .dtype = DType::kF32, .shape = shape};
  std::vector<float>& values = values_[name];
  std::mt19937 random(HashName(name));
  const int64_t last = shape.back();
  const Distribution distribution = For(name, last);
  std::normal_distribution<float> normal(distribution.mean, distribution.deviation);
  values.resize(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    values[i] = normal(random) + Offset(name, i, last);
    if (name.ends_with("inv_freq")) {
      values[i] = std::pow(10000.0f, -static_cast<float>(i) / static_cast<float>(last));
    }
  }
  tensor.data = std::as_bytes(std::span(values));
  return tensor;
}

H3Config TinyConfig() {
  H3Config config;
  config.d_model = 32;
  config.n_layer = 3;
  config.d_inner = 64;
  config.vocab_size = 40;
  config.padded_vocab_size = 48;
  config.d_state = 8;
  config.n_ssm = 32;
  config.attention_layers = {1};
  config.attention_heads = 4;
  return config;
}

std::unique_ptr<HybridH3> MakeTestModel(Backend& backend, const H3Config& config, DType weights) {
  TestWeights source;
  return std::move(HybridH3::Load(backend, config, source, weights)).value();
}

BigsConfig TinyBigsConfig() {
  BigsConfig config;
  config.vocab_size = 40;
  config.hidden_size = 32;
  config.num_hidden_layers = 2;
  config.intermediate_size = 64;
  config.num_ssm = 8;
  config.max_position_embeddings = 300;
  config.labels = {"no", "yes", "maybe"};
  config.pad_to = 64;
  return config;
}

std::unique_ptr<Bigs> MakeTestBigs(Backend& backend, const BigsConfig& config, DType weights) {
  TestWeights source;
  return std::move(Bigs::Load(backend, config, source, weights)).value();
}

std::vector<int32_t> RandomIds(int64_t count, int64_t vocab, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % vocab);
  return ids;
}

}  // namespace hippodrome
