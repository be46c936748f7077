// What the server does, without a transport: validate, look up, hand over.
#ifndef HIPPODROME_SERVER_HANDLERS_HANDLERS_H_
#define HIPPODROME_SERVER_HANDLERS_HANDLERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hippodrome/v1/generation.pb.h"
#include "hippodrome/v1/models.pb.h"
#include "server/batching/generation_batcher.h"
#include "server/handlers/encoding_handlers.h"
#include "server/handlers/model_list.h"
#include "server/handlers/score_handler.h"
#include "server/handlers/served_model.h"
#include "server/handlers/state_handlers.h"
#include "server/handlers/token_places.h"
#include "server/options.h"

namespace hippodrome {

// Answers that are being made to the prompts of one call.
struct CompletionGroup {
  std::shared_ptr<const ServedDecoder> model;
  std::vector<std::vector<int32_t>> prompts;             // their tokens, where they are new
  std::vector<std::unique_ptr<Generation>> generations;  // [prompts * choices]
};

// Errors are those of generation.proto. Thread-safe.
class Handlers {
 public:
  // REQUIRES: names differ.
  Handlers(std::vector<std::unique_ptr<ServedModel>> models, const RequestLimits& limits,
           const StateOptions& states = {});

  absl::StatusOr<std::unique_ptr<Generation>> Generate(const v1::GenerateRequest& request,
                                                       const Caller& caller);
  // `choices` answers to each prompt, from its choice() on: all, or an error and none. REQUIRES:
  // there are requests, all for one model and from one state. From a state it takes a while: see
  // StateHandlers.
  absl::StatusOr<CompletionGroup> Complete(std::span<const v1::GenerateRequest> requests,
                                           int64_t choices, const Caller& caller);
  // The same by `model`, which FindDecoder() gave.
  absl::StatusOr<CompletionGroup> Complete(const std::shared_ptr<ServedDecoder>& model,
                                           std::span<const v1::GenerateRequest> requests,
                                           int64_t choices, const Caller& caller);
  absl::StatusOr<std::unique_ptr<PendingScore>> Score(const v1::ScoreRequest& request,
                                                      const Caller& caller);
  absl::StatusOr<v1::TokenizeResponse> Tokenize(const v1::TokenizeRequest& request) const;
  absl::StatusOr<v1::DetokenizeResponse> Detokenize(const v1::DetokenizeRequest& request) const;
  // The tokens of a text with their places: see token_places.h. `model` as in requests.
  absl::StatusOr<std::vector<PlacedToken>> PlaceTokens(const std::string& model,
                                                       const std::string& text,
                                                       bool add_special) const;
  // Detokenize(), without special tokens if so wished.
  absl::StatusOr<std::string> Decode(const std::string& model, std::span<const int32_t> ids,
                                     bool skip_special) const;
  // Of the model `name`; with "", of the first decoder, or else of the first model.
  absl::StatusOr<TokenizerInfo> DescribeTokenizer(const std::string& name) const;
  v1::ListModelsResponse ListModels() const;
  // `name` as in requests: empty for the first model.
  absl::StatusOr<v1::Model> GetModel(const std::string& name) const;
  // The full name of the decoder that a request to Generate() means, or "" if there is none.
  std::string ModelName(const std::string& name) const;

  // That decoder.
  absl::StatusOr<std::shared_ptr<ServedDecoder>> FindDecoder(const std::string& name) const {
    return models_.FindDecoder(name);
  }

  StateHandlers& states() { return states_; }
  // Encoders' part.
  EncodingHandlers& encoding() { return encoding_; }

  // Which models there are may change at any time.
  ModelList& models() { return models_; }

  const RequestLimits& limits() const { return limits_; }

  // OK while there are models, all engine loops are alive and the server is not stopping. Never
  // waits.
  absl::Status Ready() const;
  // Says from now on that it is not ready. Requests are taken as before.
  void AnnounceStop() { stopping_.store(true); }
  // Refuses new requests with kUnavailable. Those that are here go on.
  void Close();
  // Requests that can go on elsewhere, from the store of states, end with what they need for that;
  // those that wait, with kUnavailable. Without a store that others have too, nothing changes.
  // REQUIRES: Close() was called.
  void Migrate();
  // Ends all requests with kUnavailable.
  void Abort();
  // Requests that wait or run.
  int64_t pending() const;

 private:
  // What `requests` say of states, to the calls that were made of them; `choices` as in Complete().
  absl::Status AddStates(const ServedDecoder& model, std::span<const v1::GenerateRequest> requests,
                         int64_t choices, const Caller& caller, std::vector<GenerationCall>& calls);

  StateHandlers states_;  // outlives the models, whose loops hand over states
  ModelList models_;
  const RequestLimits limits_;
  EncodingHandlers encoding_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> closed_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_HANDLERS_H_
