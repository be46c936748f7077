#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/models/h3_names.h"
#include "tools/convert/models/h3_shapes.h"
#include "tools/convert/models/infer_config.h"
#include "tools/convert/models/prepare_model.h"
#include "tools/convert/models/shape_map.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

// A checkpoint of any generation, seen as one of the current generation. One thread at a time.
class H3Checkpoint : public TensorReader {
 public:
  // Errors: kInvalidArgument for names that cannot be mapped and tensors that are no floats.
  static absl::StatusOr<H3Checkpoint> Make(std::unique_ptr<CheckpointSource> source);

  // By current name.
  const ShapeMap& shapes() const { return shapes_; }
  uint64_t file_bytes() const { return source_->file_bytes(); }

  absl::Status Read(const std::string& name, uint64_t first, std::span<float> out) override;

  // Error unless lm_head.weight is absent, shares the embedding's storage, or equals it in every
  // element. REQUIRES: equal shapes.
  absl::Status CheckTiedHead();

 private:
  absl::Status Add(const MappedTensor& mapped);

  std::unique_ptr<CheckpointSource> source_;
  std::map<std::string, MappedTensor> mapped_;
  ShapeMap shapes_;
};

absl::StatusOr<H3Checkpoint> H3Checkpoint::Make(std::unique_ptr<CheckpointSource> source) {
  std::vector<std::string> names;
  for (const SourceTensor& tensor : source->tensors()) names.push_back(tensor.name);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<MappedTensor> mapped,
                              MapH3Names(names, source->lightning()));
  H3Checkpoint checkpoint;
  checkpoint.source_ = std::move(source);
  for (const MappedTensor& tensor : mapped) {
    HIPPODROME_RETURN_IF_ERROR(checkpoint.Add(tensor));
  }
  return checkpoint;
}

absl::Status H3Checkpoint::Add(const MappedTensor& mapped) {
  const SourceTensor& tensor = source_->tensors()[mapped.source];
  HIPPODROME_RETURN_IF_ERROR(CheckFloat(tensor));
  std::vector<int64_t> shape = tensor.shape;
  if (mapped.parts > 1) {
    if (shape.empty() || shape[0] % mapped.parts != 0) {
      return InvalidArgument("tensor '" + Printable(tensor.name) + "' has shape " +
                             ShapeText(shape) + "; expected rows in " +
                             std::to_string(mapped.parts) + " equal parts");
    }
    shape[0] /= mapped.parts;
  }
  shapes_.emplace(mapped.name, std::move(shape));
  mapped_.emplace(mapped.name, mapped);
  return absl::OkStatus();
}

absl::Status H3Checkpoint::Read(const std::string& name, uint64_t first, std::span<float> out) {
  const MappedTensor& mapped = mapped_.at(name);
  const uint64_t part = source_->tensors()[mapped.source].elements / mapped.parts;
  return source_->Read(mapped.source, part * mapped.part + first, out);
}

absl::Status H3Checkpoint::CheckTiedHead() {
  const auto head = mapped_.find(kHead);
  if (head == mapped_.end()) return absl::OkStatus();
  const size_t words = mapped_.at(kWordEmbeddings).source;
  if (source_->Same(head->second.source, words)) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const bool equal, EqualElements(*this, kWordEmbeddings, kHead,
                                                              source_->tensors()[words].elements));
  if (equal) return absl::OkStatus();
  return InvalidArgument(
      "lm_head.weight differs from the embedding; heads that are not tied are not supported");
}

}  // namespace

absl::StatusOr<PreparedModel> PrepareH3(std::unique_ptr<CheckpointSource> source,
                                        const std::string& config_json,
                                        const ConvertOptions& options) {
  if (!options.layer_gelu.empty()) return InvalidArgument("--layer-gelu is for BiGS models");
  if (options.pad_to.has_value()) return InvalidArgument("--pad-to is for BiGS models");
  const ConfigHints hints{.config_json = config_json,
                          .preset = options.preset,
                          .attention_heads = options.attention_heads};
  HIPPODROME_ASSIGN_OR_RETURN(H3Checkpoint checkpoint, H3Checkpoint::Make(std::move(source)));
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, DecideConfig(checkpoint.shapes(), hints));
  HIPPODROME_RETURN_IF_ERROR(CheckShapes(checkpoint.shapes(), config));
  PreparedModel model{
      .specs = H3TensorSpecs(config, options.matrix_dtype),
      .config_json = ToJson(config),
      .summary =
          std::to_string(config.n_layer) + " layers, d_model " + std::to_string(config.d_model),
      .vocab_size = config.vocab_size,
  };
  HIPPODROME_RETURN_IF_ERROR(CheckExpansion(model.specs, checkpoint.file_bytes()));
  HIPPODROME_RETURN_IF_ERROR(checkpoint.CheckTiedHead());
  model.parameters = CountParameters(model.specs);
  model.tensors = std::make_unique<H3Checkpoint>(std::move(checkpoint));
  return model;
}

}  // namespace hippodrome
