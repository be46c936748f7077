// The models of a server, by name.
#ifndef HIPPODROME_SERVER_HANDLERS_MODEL_LIST_H_
#define HIPPODROME_SERVER_HANDLERS_MODEL_LIST_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/handlers/served_model.h"

namespace hippodrome {

// Immutable. Errors of the Find functions: kNotFound, and kFailedPrecondition for a model of
// another kind or head, or where an empty name means the first that fits and there is none.
class ModelList {
 public:
  // REQUIRES: at least one model; names differ.
  explicit ModelList(std::vector<std::unique_ptr<ServedModel>> models)
      : models_(std::move(models)) {}

  // An empty name means the first model, ...
  absl::StatusOr<ServedModel*> Find(const std::string& name) const;
  // ... the first decoder, the first encoder, or the first encoder with one of `heads`.
  absl::StatusOr<ServedDecoder*> FindDecoder(const std::string& name) const;
  absl::StatusOr<ServedEncoder*> FindEncoder(const std::string& name) const;
  absl::StatusOr<ServedEncoder*> FindEncoder(const std::string& name,
                                             std::initializer_list<EncoderHead> heads) const;

  const std::vector<std::unique_ptr<ServedModel>>& all() const { return models_; }

 private:
  const std::vector<std::unique_ptr<ServedModel>> models_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_MODEL_LIST_H_
