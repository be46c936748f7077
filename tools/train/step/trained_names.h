// Which tensors of a checkpoint are trained.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_TRAINED_NAMES_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_TRAINED_NAMES_H_

#include <string>

namespace hippodrome {

// All but the frequencies of rotary attention, which are constants.
inline bool IsTrained(const std::string& name) { return !name.ends_with("rotary_emb.inv_freq"); }

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_TRAINED_NAMES_H_
