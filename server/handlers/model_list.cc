#include "server/handlers/model_list.h"

#include <algorithm>

#include "engine/base/status.h"
#include "server/handlers/encoder_info.h"

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

absl::StatusOr<ServedEncoder*> ModelList::FindEncoder(
    const std::string& name, std::initializer_list<EncoderHead> heads) const {
  const auto fits = [heads](const ServedEncoder& encoder) {
    return std::find(heads.begin(), heads.end(), encoder.engine().config().head) != heads.end();
  };
  if (name.empty()) {
    for (const auto& model : models_) {
      if (model->encoder() != nullptr && fits(*model->encoder())) return model->encoder();
    }
    return FailedPrecondition(std::string("no model of this server has the head ") +
                              HeadName(*heads.begin()));
  }
  HIPPODROME_ASSIGN_OR_RETURN(ServedEncoder * encoder, FindEncoder(name));
  if (fits(*encoder)) return encoder;
  return FailedPrecondition("model '" + name + "' has the head " +
                            HeadName(encoder->engine().config().head) + ", but this call needs " +
                            HeadName(*heads.begin()));
}

}  // namespace hippodrome
