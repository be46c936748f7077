// How likely each of several continuations of one context is.
#ifndef HIPPODROME_SERVER_HANDLERS_SCORE_HANDLER_H_
#define HIPPODROME_SERVER_HANDLERS_SCORE_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "hippodrome/v1/generation.pb.h"
#include "server/batching/generation_batcher.h"
#include "server/handlers/served_model.h"
#include "server/options.h"

namespace hippodrome {

// The scores of a call that are not here yet. Destroying it gives up the work. Take() may be called
// while `wake` runs; apart from that, not thread-safe.
class PendingScore {
 public:
  // A continuation with the sequence that takes it in behind its context.
  struct Part {
    std::unique_ptr<Generation> generation;  // null once it is done
    std::vector<int32_t> continuation;
  };

  // `model`: the name of the model that answers.
  PendingScore(std::string model, std::vector<Part> parts, bool per_token)
      : model_(std::move(model)),
        parts_(std::move(parts)),
        unfinished_(parts_.size()),
        per_token_(per_token) {}

  const std::string& model() const { return model_; }

  // `wake` is called on any thread, perhaps several times, when Take() is worth calling; at once if
  // it is now. It must be cheap and must not call OnReady(). It is not called after
  // OnReady(nullptr) or the destructor has returned.
  void OnReady(const std::function<void()>& wake);

  // The answer, or nothing before all of it is there.
  std::optional<absl::StatusOr<v1::ScoreResponse>> Take();

 private:
  const std::string model_;
  std::vector<Part> parts_;
  size_t unfinished_;
  const bool per_token_;
  v1::ScoreResponse response_;
};

// Begins to score. Errors: those of generation.proto.
absl::StatusOr<std::unique_ptr<PendingScore>> Score(const v1::ScoreRequest& request,
                                                    ServedDecoder& model,
                                                    const RequestLimits& limits,
                                                    const Caller& caller);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_SCORE_HANDLER_H_
