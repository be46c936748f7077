#include "server/model_list.h"

#include "engine/status.h"

namespace hippodrome {

absl::StatusOr<ServedModel*> ModelList::Find(const std::string& name) const {
  if (name.empty()) return models_.front().get();
  for (const auto& model : models_) {
    if (model->info().name() == name) return model.get();
  }
  return NotFound("there is no model '" + name + "'");
}

absl::StatusOr<ServedDecoder*> ModelList::FindDecoder(const std::string& name) const {
  if (name.empty()) {
    for (const auto& model : models_) {
      if (model->decoder() != nullptr) return model->decoder();
    }
    return FailedPrecondition("no model of this server generates text: all are encoders");
  }
  HIPPODROME_ASSIGN_OR_RETURN(ServedModel * model, Find(name));
  if (model->decoder() != nullptr) return model->decoder();
  return FailedPrecondition("model '" + name + "' is an encoder: it does not generate text");
}

absl::StatusOr<ServedEncoder*> ModelList::FindEncoder(const std::string& name) const {
  if (name.empty()) {
    for (const auto& model : models_) {
      if (model->encoder() != nullptr) return model->encoder();
    }
    return FailedPrecondition("no model of this server is an encoder");
  }
  HIPPODROME_ASSIGN_OR_RETURN(ServedModel * model, Find(name));
  if (model->encoder() != nullptr) return model->encoder();
  return FailedPrecondition("model '" + name + "' is a decoder: only encoders can do this");
}

}  // namespace hippodrome
