// The result of training: a model directory that the other commands load.
#ifndef HIPPODROME_TOOLS_TRAIN_CHECKPOINT_SAVED_MODEL_H_
#define HIPPODROME_TOOLS_TRAIN_CHECKPOINT_SAVED_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/train/checkpoint/training_state.h"

namespace hippodrome {

struct ModelToSave {
  std::string config_json;          // a whole config.json
  std::string run_json;             // of the run file, for the record
  std::string card;                 // see ModelCardText()
  std::string tokenizer;            // a directory; empty: none
  std::vector<TensorSpec> tensors;  // under their published names; F32 or BF16
};

// Makes `directory` one with config.json, model.safetensors, training.json, README.md and the
// tokenizer's files, in place of what it held before, but for a README.md that a person wrote there
// (ReadOwnReadme()), which stays: its readers find the old files or the new ones. `read`
// gives the values of a tensor by its index in `model.tensors`; for BF16 they are rounded to
// nearest even. Errors: those of `read`; kInvalidArgument or kNotFound for a tokenizer that does
// not fit the model; kInternal with the path and the system's reason.
absl::Status SaveModel(const std::string& directory, const ModelToSave& model,
                       const ReadStateArray& read);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_CHECKPOINT_SAVED_MODEL_H_
