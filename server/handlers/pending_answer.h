// The answer of an encoder that is not here yet.
#ifndef HIPPODROME_SERVER_HANDLERS_PENDING_ANSWER_H_
#define HIPPODROME_SERVER_HANDLERS_PENDING_ANSWER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/encoder.h"
#include "server/batching/encoding_batcher.h"

namespace hippodrome {

// Destroying it gives up the work. Take() may be called while `wake` runs; apart from that, not
// thread-safe.
template <typename Response>
class PendingAnswer {
 public:
  // What follows the model: softmax, spans, text. One output for each request of `encoding`.
  using Finish = std::function<absl::StatusOr<Response>(const std::vector<EncoderOutput>&)>;

  // `model`: the name of the model that answers.
  PendingAnswer(std::string model, std::unique_ptr<Encoding> encoding, Finish finish)
      : model_(std::move(model)), encoding_(std::move(encoding)), finish_(std::move(finish)) {}

  const std::string& model() const { return model_; }

  // `wake` is called once, on any thread, when the answer is ready; at once if it is ready now. It
  // must be cheap and must not call OnReady(). It is not called after OnReady(nullptr) or the
  // destructor has returned.
  void OnReady(std::function<void()> wake) { encoding_->OnReady(std::move(wake)); }

  // The answer, made on the calling thread. Nothing before it is ready, and nothing after the first
  // time.
  std::optional<absl::StatusOr<Response>> Take() {
    auto outputs = encoding_->Take();
    if (!outputs) return std::nullopt;
    if (!outputs->ok()) return outputs->status();
    return finish_(**outputs);
  }

 private:
  const std::string model_;
  std::unique_ptr<Encoding> encoding_;
  Finish finish_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_PENDING_ANSWER_H_
