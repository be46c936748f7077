// The models of a server, by name.
#ifndef HIPPODROME_SERVER_MODEL_LIST_H_
#define HIPPODROME_SERVER_MODEL_LIST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/served_model.h"

namespace hippodrome {

// Immutable. Errors of the Find functions: kNotFound, and kFailedPrecondition for a model of the
// other kind, or where an empty name means the first of a kind and there is none.
class ModelList {
 public:
  // REQUIRES: at least one model; names differ.
  explicit ModelList(std::vector<std::unique_ptr<ServedModel>> models)
      : models_(std::move(models)) {}

  // An empty name means the first model, ...
  absl::StatusOr<ServedModel*> Find(const std::string& name) const;
  // ... the first decoder, or the first encoder.
  absl::StatusOr<ServedDecoder*> FindDecoder(const std::string& name) const;
  absl::StatusOr<ServedEncoder*> FindEncoder(const std::string& name) const;

  const std::vector<std::unique_ptr<ServedModel>>& all() const { return models_; }

 private:
  const std::vector<std::unique_ptr<ServedModel>> models_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_MODEL_LIST_H_
