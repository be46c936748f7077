// The fields of a decoder's config.json that belong to its mixer.
#ifndef HIPPODROME_ENGINE_CONFIG_CONFIG_MIXER_H_
#define HIPPODROME_ENGINE_CONFIG_CONFIG_MIXER_H_

#include <nlohmann/json.hpp>

#include "engine/base/json_object.h"
#include "engine/config/config.h"

namespace hippodrome {

// Reads "mixer" of `top`.
void ReadMixer(ObjectReader& top, H3Config& config);
// Reads the sizes in ssm_cfg. REQUIRES: d_model, the positions and the mixer are known.
void ReadMixerSizes(ObjectReader& ssm, H3Config& config);

// What ReadMixerSizes() reads.
nlohmann::ordered_json MixerSizes(const H3Config& config);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CONFIG_CONFIG_MIXER_H_
