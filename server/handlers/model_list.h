// The models of a server, by name.
#ifndef HIPPODROME_SERVER_HANDLERS_MODEL_LIST_H_
#define HIPPODROME_SERVER_HANDLERS_MODEL_LIST_H_

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/handlers/served_model.h"

namespace hippodrome {

// Changes while requests run: each keeps the model that it found until its answer has gone,
// whatever happens to the list meanwhile. Models that have left the list live on here until Reap(),
// so that no transport's thread ever destroys one. Thread-safe; no lock is held while anybody has a
// model.
//
// Errors of the Find functions: kNotFound, and kFailedPrecondition for a model of another kind or
// head, or where an empty name means the first that fits and there is none.
class ModelList {
 public:
  using Clock = std::chrono::steady_clock;
  using Models = std::vector<std::shared_ptr<ServedModel>>;

  // REQUIRES: names differ.
  explicit ModelList(std::vector<std::unique_ptr<ServedModel>> models);

  // An empty name means the first model, ...
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(const std::string& name) const;
  // ... the first decoder, the first encoder, or the first encoder with one of `heads`.
  absl::StatusOr<std::shared_ptr<ServedDecoder>> FindDecoder(const std::string& name) const;
  absl::StatusOr<std::shared_ptr<ServedEncoder>> FindEncoder(const std::string& name) const;
  absl::StatusOr<std::shared_ptr<ServedEncoder>> FindEncoder(
      const std::string& name, std::initializer_list<EncoderHead> heads) const;

  // Those that are found, in order.
  std::shared_ptr<const Models> all() const;
  // Those that have left the list and still have requests.
  Models leaving() const;

  // From now on `model` is found under its name: in the place of the one that had it, which leaves,
  // or behind all others. The requests of the one that leaves go on, until `cut` at most.
  void Publish(std::unique_ptr<ServedModel> model,
               Clock::time_point cut = Clock::time_point::max());
  // From now on there is no model `name`; its requests go on, until `cut` at most. kNotFound.
  absl::Status Withdraw(const std::string& name, Clock::time_point cut = Clock::time_point::max());
  // Orders the models as `names` say, from now on; others follow behind them.
  void Arrange(std::vector<std::string> names);
  // Destroys those that have left and that no request holds any more, and ends the requests of
  // those whose time is over. The names of those that were destroyed.
  std::vector<std::string> Reap();

  // As of ServedModel, of all models, those that leave and those that are yet to come included.
  void Close();
  void Migrate();
  void Abort(const absl::Status& reason);
  int64_t pending() const;

 private:
  struct Leaving {
    std::shared_ptr<ServedModel> model;
    Clock::time_point cut;
  };

  // All below: mutex_ is held.
  void Replace(Models models);
  size_t Rank(const std::string& name) const;
  void Sort(Models& models) const;

  mutable std::mutex mutex_;              // guards the next group
  std::shared_ptr<const Models> models_;  // never changed, but replaced
  std::vector<Leaving> leaving_;
  std::vector<std::string> arrangement_;
  bool closed_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_MODEL_LIST_H_
