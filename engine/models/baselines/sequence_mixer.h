// The mixers that H3 was compared with (H3, sections 4 and 6.1).
#ifndef HIPPODROME_ENGINE_MODELS_BASELINES_SEQUENCE_MIXER_H_
#define HIPPODROME_ENGINE_MODELS_BASELINES_SEQUENCE_MIXER_H_

#include <string>
#include <variant>

#include "engine/models/baselines/gss.h"
#include "engine/models/baselines/linear_attention.h"
#include "engine/models/baselines/s4.h"
#include "engine/models/baselines/s4d.h"

namespace hippodrome {

using SequenceMixer = std::variant<S4dMixer, S4Mixer, GssMixer, LinearAttentionMixer>;

// Reads the mixer of `config` under `prefix`. REQUIRES: not DecoderMixer::kH3.
absl::StatusOr<SequenceMixer> LoadSequenceMixer(const WeightsReader& reader, const H3Config& config,
                                                const std::string& prefix);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_BASELINES_SEQUENCE_MIXER_H_
