#include "tests/testing/initial_model.h"

#include "engine/base/status.h"

namespace hippodrome {

InitialSource::InitialSource(const std::vector<InitialParameter>& parameters) {
  for (const InitialParameter& p : parameters) parameters_[p.name] = &p;
}

absl::StatusOr<TensorView> InitialSource::Get(const std::string& name,
                                              const std::vector<int64_t>& shape) {
  const auto found = parameters_.find(name);
  if (found == parameters_.end()) return NotFound("there is no tensor " + name);
  const InitialParameter& p = *found->second;
  TensorView tensor{.name = name, .dtype = DType::kF32, .shape = p.shape};
  if (p.shape != shape || static_cast<int64_t>(p.values.size()) != tensor.elements()) {
    return InvalidArgument(name + " has another shape");
  }
  read_.insert(name);
  tensor.data = std::as_bytes(std::span(p.values));
  return tensor;
}

std::vector<std::string> InitialSource::Unread() const {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters_) {
    if (!read_.contains(name)) names.push_back(name);
  }
  return names;
}

H3Config TinyMixerConfig(DecoderMixer mixer) {
  H3Config config;
  config.d_model = 16;
  config.n_layer = 3;
  config.d_inner = 24;
  config.vocab_size = 24;
  config.padded_vocab_size = 32;
  config.mixer = mixer;
  config.d_state = 8;
  config.n_ssm = mixer == DecoderMixer::kS4d || mixer == DecoderMixer::kGss ? 1 : 16;
  if (mixer == DecoderMixer::kGss) config.gss_channels = 5;
  if (mixer == DecoderMixer::kLinearAttention) config.head_dim = 8;
  config.attention_layers = {1};
  config.attention_heads = 2;
  return config;
}

}  // namespace hippodrome
