// Engines of a server that own what they run on. For load_model.cc alone.
#ifndef HIPPODROME_SERVER_OWNING_ENGINES_H_
#define HIPPODROME_SERVER_OWNING_ENGINES_H_

#include <memory>
#include <utility>
#include <vector>

#include "engine/encoder.h"
#include "engine/generator.h"
#include "engine/models/bigs/bigs.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/backend.h"
#include "server/batching/encoder_engine.h"
#include "server/batching/sequence_engine.h"

namespace hippodrome {

// A generator with what it runs on, in the order in which they must be destroyed.
class OwningGenerator : public SequenceEngine {
 public:
  OwningGenerator(std::unique_ptr<Backend> backend, std::unique_ptr<HybridH3> model,
                  std::unique_ptr<Generator> generator)
      : backend_(std::move(backend)), model_(std::move(model)), generator_(std::move(generator)) {}

  Footprint Cost(int64_t prompt_tokens, int64_t max_tokens) const override {
    return generator_->Cost(prompt_tokens, max_tokens);
  }
  Footprint capacity() const override { return generator_->capacity(); }
  absl::Status Validate(const GenerationRequest& request) const override {
    return generator_->Validate(request);
  }
  Footprint used() const override { return generator_->used(); }
  bool prefilling() const override { return generator_->prefilling(); }
  int64_t decoding() const override { return generator_->decoding(); }
  absl::StatusOr<SequenceId> Admit(GenerationRequest request) override {
    return generator_->Admit(std::move(request));
  }
  void Prefill(Clock::time_point until, std::vector<TokenEvent>& events) override {
    generator_->Prefill(until, events);
  }
  void Step(std::vector<TokenEvent>& events) override { generator_->Step(events); }
  void Release(SequenceId sequence) override { generator_->Release(sequence); }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
  std::unique_ptr<Generator> generator_;
};

// An encoder with what it runs on, in the order in which they must be destroyed.
class OwningEncoder : public EncoderEngine {
 public:
  OwningEncoder(std::unique_ptr<Backend> backend, std::unique_ptr<Bigs> model,
                std::unique_ptr<Encoder> encoder)
      : backend_(std::move(backend)), model_(std::move(model)), encoder_(std::move(encoder)) {}

  const BigsConfig& config() const override { return encoder_->config(); }
  int64_t max_tokens() const override { return encoder_->max_tokens(); }
  int64_t PaddedLength(int64_t tokens) const override { return encoder_->PaddedLength(tokens); }
  int64_t max_batch_tokens() const override { return encoder_->max_batch_tokens(); }
  absl::Status Validate(const EncoderRequest& request) const override {
    return encoder_->Validate(request);
  }
  std::vector<EncoderOutput> Run(std::span<const EncoderRequest* const> requests) override {
    return encoder_->Run(requests);
  }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Bigs> model_;
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_OWNING_ENGINES_H_
