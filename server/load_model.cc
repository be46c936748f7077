#include "server/load_model.h"

#include <chrono>
#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "server/handlers/encoder_info.h"
#include "server/owning_engines.h"

namespace hippodrome {
namespace {

absl::StatusOr<int64_t> CountParameters(const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsFile> file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  int64_t parameters = 0;
  for (const auto& [name, tensor] : file->tensors()) parameters += tensor.elements();
  return parameters;
}

// What both families say of themselves.
v1::Model Describe(const std::string& name, DType weights, bool has_tokenizer, int64_t parameters) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  v1::Model info;
  info.set_name(name);
  info.set_weights(weights == DType::kBF16 ? "bf16" : "f32");
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

absl::StatusOr<ModelParts> LoadDecoder(const Source& source, std::unique_ptr<Backend> backend) {
  const GeneratorOptions& options = source.options.generator;
  HIPPODROME_ASSIGN_OR_RETURN(
      LoadedDecoder loaded,
      LoadDecoderDirectory(*backend, source.directory, source.options.weights, source.progress));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Generator> generator,
                              Generator::Create(*backend, *loaded.model, options));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t parameters, CountParameters(source.directory));
  ModelParts parts;
  parts.info = Describe(source.name, loaded.weights, loaded.tokenizer != nullptr, parameters);
  parts.info.set_architecture("h3");
  parts.info.set_vocab_size(loaded.model->config().vocab_size);
  parts.info.set_max_positions(loaded.model->config().max_position_embeddings);
  parts.info.set_max_sequences(options.max_sequences);
  parts.device = backend->name();
  parts.family =
      DecoderParts{std::move(loaded.tokenizer),
                   std::make_unique<OwningGenerator>(std::move(backend), std::move(loaded.model),
                                                     std::move(generator))};
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
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t parameters, CountParameters(source.directory));
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
  std::string obstacle;
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                              OpenBackend(options.device, options.cpu, &obstacle));
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(directory));
  const Source source{name, directory, options, progress};
  HIPPODROME_ASSIGN_OR_RETURN(ModelParts parts, family == ModelFamily::kBigs
                                                    ? LoadEncoder(source, std::move(backend))
                                                    : LoadDecoder(source, std::move(backend)));
  parts.device_obstacle = std::move(obstacle);
  return parts;
}

}  // namespace hippodrome
