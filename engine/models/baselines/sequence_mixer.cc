#include "engine/models/baselines/sequence_mixer.h"

namespace hippodrome {

absl::StatusOr<SequenceMixer> LoadSequenceMixer(const WeightsReader& reader, const H3Config& config,
                                                const std::string& prefix) {
  if (config.mixer == DecoderMixer::kS4d) return S4dMixer::Load(reader, config, prefix);
  if (config.mixer == DecoderMixer::kS4) return S4Mixer::Load(reader, config, prefix);
  if (config.mixer == DecoderMixer::kLinearAttention) {
    return LinearAttentionMixer::Load(reader, config, prefix);
  }
  return GssMixer::Load(reader, config, prefix);
}

}  // namespace hippodrome
