#include "server/load_model.h"

#include <chrono>
#include <utility>

#include "engine/checkpoint/safetensors.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "engine/status.h"

namespace hippodrome {
namespace {

// A generator with what it runs on, in the order in which they must be destroyed.
class GeneratorEngine : public SequenceEngine {
 public:
  GeneratorEngine(std::unique_ptr<Backend> backend, std::unique_ptr<HybridH3> model,
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

absl::StatusOr<int64_t> CountParameters(const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsFile> file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  int64_t parameters = 0;
  for (const auto& [name, tensor] : file->tensors()) parameters += tensor.elements();
  return parameters;
}

v1::Model Describe(const std::string& name, const LoadedModel& loaded,
                   const GeneratorOptions& options) {
  const H3Config& config = loaded.model->config();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  v1::Model info;
  info.set_name(name);
  info.set_architecture("h3");
  info.set_weights(loaded.weights == DType::kBF16 ? "bf16" : "f32");
  info.set_vocab_size(config.vocab_size);
  info.set_max_positions(config.max_position_embeddings);
  info.set_has_tokenizer(loaded.tokenizer != nullptr);
  info.set_created(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  info.set_max_sequences(options.max_sequences);
  return info;
}

}  // namespace

absl::StatusOr<ModelParts> LoadModel(const std::string& name, const std::string& directory,
                                     const LoadOptions& options,
                                     const HybridH3::Progress& progress) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                              OpenBackend(options.device, options.threads));
  HIPPODROME_ASSIGN_OR_RETURN(LoadedModel loaded,
                              LoadModelDirectory(*backend, directory, options.weights, progress));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Generator> generator,
                              Generator::Create(*backend, *loaded.model, options.generator));
  ModelParts parts;
  parts.device = backend->name();
  parts.info = Describe(name, loaded, options.generator);
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t parameters, CountParameters(directory));
  parts.info.set_parameters(parameters);
  parts.tokenizer = std::move(loaded.tokenizer);
  parts.engine = std::make_unique<GeneratorEngine>(std::move(backend), std::move(loaded.model),
                                                   std::move(generator));
  return parts;
}

}  // namespace hippodrome
