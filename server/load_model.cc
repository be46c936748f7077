#include "server/load_model.h"

#include <chrono>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "engine/config/bigs_config.h"
#include "engine/encoder.h"
#include "engine/generator.h"
#include "engine/model_directory.h"
#include "engine/models/bigs/bigs.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/open_backend.h"
#include "kernels/backend.h"
#include "kernels/cpu/base/thread_pool.h"
#include "server/batching/encoder_engine.h"
#include "server/batching/sequence_engine.h"
#include "server/handlers/encoder_info.h"

namespace hippodrome {
namespace {

// A generator with what it runs on, in the order in which they must be destroyed.
class OwningGenerator : public SequenceEngine {
 public:
  OwningGenerator(std::unique_ptr<Backend> backend, std::unique_ptr<HybridH3> model,
                  std::unique_ptr<HybridH3> draft, std::unique_ptr<Generator> generator)
      : backend_(std::move(backend)),
        model_(std::move(model)),
        draft_(std::move(draft)),
        generator_(std::move(generator)),
        arithmetic_(generator_->arithmetic()) {}

  Footprint Cost(int64_t prompt_tokens, int64_t max_tokens) const override {
    return generator_->Cost(prompt_tokens, max_tokens);
  }
  Footprint capacity() const override { return generator_->capacity(); }
  absl::Status Validate(const GenerationRequest& request) const override {
    return generator_->Validate(request);
  }
  std::string arithmetic() const override { return arithmetic_; }
  const StateLayout& state_layout() const override { return generator_->state_layout(); }
  Footprint used() const override { return generator_->used(); }
  bool prefilling() const override { return generator_->prefilling(); }
  int64_t decoding() const override { return generator_->decoding(); }
  int64_t ready() const override { return generator_->ready(); }
  DraftCounts drafts() const override { return generator_->drafts(); }
  PrefixCounts prefixes() const override { return generator_->prefixes(); }
  absl::StatusOr<SequenceId> Admit(GenerationRequest request) override {
    return generator_->Admit(std::move(request));
  }
  int64_t Remaining(SequenceId sequence) const override { return generator_->Remaining(sequence); }
  void Prefill(Clock::time_point until, std::vector<TokenEvent>& events) override {
    generator_->Prefill(until, events);
  }
  int64_t stepped() const override { return generator_->stepped(); }
  void Step(std::vector<TokenEvent>& events) override { generator_->Step(events); }
  void Release(SequenceId sequence) override { generator_->Release(sequence); }
  absl::StatusOr<SavedState> Save(SequenceId sequence) const override {
    return generator_->Save(sequence);
  }
  int64_t Cached(SequenceId sequence) const override { return generator_->Cached(sequence); }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HybridH3> model_;
  std::unique_ptr<HybridH3> draft_;  // may be null
  std::unique_ptr<Generator> generator_;
  const std::string arithmetic_;
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

absl::StatusOr<int64_t> CountParametersIn(const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsFile> file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  return CountParameters(*file);
}

// What both families say of themselves.
v1::Model Describe(const std::string& name, DType weights, bool has_tokenizer, int64_t parameters) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  v1::Model info;
  info.set_name(name);
  info.set_weights(WeightsName(weights));
  info.set_parameters(parameters);
  info.set_has_tokenizer(has_tokenizer);
  info.set_created(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  return info;
}

// A model directory to load.
struct Source {
  const std::string& name;
  const std::string& directory;
  const LoadOptions& options;
  const LoadProgress& progress;
};

absl::StatusOr<std::unique_ptr<Generator>> CreateGenerator(Backend& backend, const HybridH3& model,
                                                           const GeneratorOptions& options) {
  try {
    return Generator::Create(backend, model, options);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("there is no memory for the states of " +
                             std::to_string(options.max_sequences) + " sequences and " +
                             std::to_string(options.key_value_bytes) +
                             " bytes of keys and values: lower --max-sequences or --kv-bytes");
  }
}

absl::StatusOr<ModelParts> LoadDecoder(const Source& source, std::unique_ptr<Backend> backend) {
  GeneratorOptions options = source.options.generator;
  HIPPODROME_ASSIGN_OR_RETURN(
      LoadedDecoder loaded,
      LoadDecoderDirectory(*backend, source.directory, source.options.weights, source.progress));
  std::unique_ptr<HybridH3> draft;
  if (!source.options.draft.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(
        draft, LoadDraftModel(*backend, source.options.draft, loaded, source.options.weights));
    options.draft = draft.get();
  }
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Generator> generator,
                              CreateGenerator(*backend, *loaded.model, options));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t parameters, CountParametersIn(source.directory));
  ModelParts parts;
  parts.info = Describe(source.name, loaded.weights, loaded.tokenizer != nullptr, parameters);
  parts.info.set_architecture("h3");
  parts.info.set_vocab_size(loaded.model->config().vocab_size);
  parts.info.set_max_positions(loaded.model->config().max_position_embeddings);
  parts.info.set_max_sequences(options.max_sequences);
  parts.info.set_attention_window(options.attention_window);
  parts.device = backend->name();
  parts.family =
      DecoderParts{std::move(loaded.tokenizer),
                   std::make_unique<OwningGenerator>(std::move(backend), std::move(loaded.model),
                                                     std::move(draft), std::move(generator))};
  return parts;
}

absl::StatusOr<ModelParts> LoadEncoder(const Source& source, std::unique_ptr<Backend> backend) {
  HIPPODROME_ASSIGN_OR_RETURN(
      LoadedEncoder loaded,
      LoadEncoderDirectory(*backend, source.directory, source.options.weights, source.progress));
  EncoderOptions options = source.options.encoder;
  if (source.options.pad_to_max) options.pad_to = loaded.model->config().max_position_embeddings;
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Encoder> encoder,
                              Encoder::Create(*backend, *loaded.model, options));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t parameters, CountParametersIn(source.directory));
  ModelParts parts;
  parts.info = Describe(source.name, loaded.weights, loaded.tokenizer != nullptr, parameters);
  parts.device = backend->name();
  auto engine = std::make_unique<OwningEncoder>(std::move(backend), std::move(loaded.model),
                                                std::move(encoder));
  DescribeEncoder(*engine, parts.info);
  parts.family = EncoderParts{std::move(loaded.tokenizer), std::move(engine)};
  return parts;
}

}  // namespace

absl::StatusOr<ModelParts> LoadModel(const std::string& name, const std::string& directory,
                                     const LoadOptions& options, const LoadProgress& progress) {
  // The thread that loads is not the one that runs the model, and starts others that compute
  // nothing.
  const absl::Cleanup let_go = ThreadPool::LetGo;
  ModelOrigin origin{directory, FingerprintModel(directory)};
  std::string obstacle;
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                              OpenBackend(options.device, options.cpu, &obstacle));
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(directory));
  const Source source{name, directory, options, progress};
  HIPPODROME_ASSIGN_OR_RETURN(ModelParts parts, family == ModelFamily::kBigs
                                                    ? LoadEncoder(source, std::move(backend))
                                                    : LoadDecoder(source, std::move(backend)));
  parts.device_obstacle = std::move(obstacle);
  parts.origin = std::move(origin);
  return parts;
}

}  // namespace hippodrome
