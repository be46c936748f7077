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
  // `model`: the name of the model that answers.
  explicit PendingAnswer(std::string model) : model_(std::move(model)) {}
  virtual ~PendingAnswer() = default;

  const std::string& model() const { return model_; }

  // `wake` is called, on any thread, when the answer is ready, and perhaps before; at once if it is
  // ready now. It must be cheap and must not call OnReady(). It is not called after
  // OnReady(nullptr) or the destructor has returned.
  virtual void OnReady(std::function<void()> wake) = 0;

  // The answer, made on the calling thread. Nothing before it is ready, and nothing after the first
  // time.
  virtual std::optional<absl::StatusOr<Response>> Take() = 0;

 private:
  const std::string model_;
};

// That of one call of an encoder.
template <typename Response>
class EncodedAnswer : public PendingAnswer<Response> {
 public:
  // What follows the model: softmax, spans, text. One output for each request of `encoding`.
  using Finish = std::function<absl::StatusOr<Response>(const std::vector<EncoderOutput>&)>;

  EncodedAnswer(std::string model, std::unique_ptr<Encoding> encoding, Finish finish)
      : PendingAnswer<Response>(std::move(model)),
        encoding_(std::move(encoding)),
        finish_(std::move(finish)) {}

  void OnReady(std::function<void()> wake) override { encoding_->OnReady(std::move(wake)); }

  std::optional<absl::StatusOr<Response>> Take() override {
    auto outputs = encoding_->Take();
    if (!outputs) return std::nullopt;
    if (!outputs->ok()) return outputs->status();
    return finish_(**outputs);
  }

 private:
  std::unique_ptr<Encoding> encoding_;
  Finish finish_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_PENDING_ANSWER_H_
