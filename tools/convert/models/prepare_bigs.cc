#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status.h"
#include "tools/convert/checkpoint_source.h"
#include "tools/convert/models/bigs_names.h"
#include "tools/convert/models/bigs_shapes.h"
#include "tools/convert/models/decide_bigs_config.h"
#include "tools/convert/models/prepare_model.h"
#include "tools/convert/models/shape_map.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

// A BiGS checkpoint, PyTorch or Flax, under the published PyTorch names and layouts. One thread at
// a time.
class BigsCheckpoint : public TensorReader {
 public:
  // Errors: kInvalidArgument for names that cannot be mapped, tensors that are no floats, and Flax
  // kernels that are no matrices.
  static absl::StatusOr<BigsCheckpoint> Make(std::unique_ptr<CheckpointSource> source);

  const ShapeMap& shapes() const { return shapes_; }
  bool flax() const { return source_->flax(); }
  uint64_t file_bytes() const { return source_->file_bytes(); }

  absl::Status Read(const std::string& name, uint64_t first, std::span<float> out) override;

  // Whether two tensors share their storage or are equal in every element. REQUIRES: they exist and
  // have equal shapes.
  absl::StatusOr<bool> Equal(const std::string& a, const std::string& b);

 private:
  absl::Status Add(const BigsTensor& tensor);
  absl::Status ReadTransposed(size_t source, uint64_t first, std::span<float> out);

  std::unique_ptr<CheckpointSource> source_;
  std::map<std::string, BigsTensor> mapped_;
  ShapeMap shapes_;
  std::vector<float> column_;
};

absl::StatusOr<BigsCheckpoint> BigsCheckpoint::Make(std::unique_ptr<CheckpointSource> source) {
  std::vector<std::string> names;
  for (const SourceTensor& tensor : source->tensors()) names.push_back(tensor.name);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<BigsTensor> mapped,
                              MapBigsNames(names, source->flax()));
  BigsCheckpoint checkpoint;
  checkpoint.source_ = std::move(source);
  for (const BigsTensor& tensor : mapped) {
    HIPPODROME_RETURN_IF_ERROR(checkpoint.Add(tensor));
  }
  return checkpoint;
}

absl::Status BigsCheckpoint::Add(const BigsTensor& mapped) {
  const SourceTensor& tensor = source_->tensors()[mapped.source];
  HIPPODROME_RETURN_IF_ERROR(CheckFloat(tensor));
  std::vector<int64_t> shape = tensor.shape;
  if (mapped.transposed) {
    if (shape.size() != 2) {
      return InvalidArgument("tensor '" + Printable(tensor.name) + "' has shape " +
                             ShapeText(shape) + "; expected a matrix");
    }
    std::swap(shape[0], shape[1]);
  }
  shapes_.emplace(mapped.name, std::move(shape));
  mapped_.emplace(mapped.name, mapped);
  return absl::OkStatus();
}

absl::Status BigsCheckpoint::Read(const std::string& name, uint64_t first, std::span<float> out) {
  const BigsTensor& mapped = mapped_.at(name);
  return mapped.transposed ? ReadTransposed(mapped.source, first, out)
                           : source_->Read(mapped.source, first, out);
}

// Reads one row of the file's [in, out] at a time, as far as it lies in the rows that `out` covers.
absl::Status BigsCheckpoint::ReadTransposed(size_t source, uint64_t first, std::span<float> out) {
  if (out.empty()) return absl::OkStatus();
  const std::vector<int64_t>& shape = source_->tensors()[source].shape;
  const auto columns = static_cast<uint64_t>(shape[0]);
  const auto rows = static_cast<uint64_t>(shape[1]);
  const uint64_t top = first / columns;
  const uint64_t bottom = (first + out.size() - 1) / columns;
  column_.resize(bottom - top + 1);
  for (uint64_t j = 0; j < columns; ++j) {
    HIPPODROME_RETURN_IF_ERROR(source_->Read(source, j * rows + top, column_));
    for (uint64_t i = top; i <= bottom; ++i) {
      const uint64_t at = i * columns + j - first;  // wraps to a large number before `first`
      if (at < out.size()) out[at] = column_[i - top];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> BigsCheckpoint::Equal(const std::string& a, const std::string& b) {
  const size_t source = mapped_.at(a).source;
  if (source_->Same(source, mapped_.at(b).source)) return true;
  return EqualElements(*this, a, b, source_->tensors()[source].elements);
}

// A tensor that a file may have twice.
struct Copy {
  std::string name;
  std::string original;
};

// The copies in a checkpoint of this configuration.
std::vector<Copy> ListCopies(const ShapeMap& shapes, const BigsConfig& config) {
  std::vector<Copy> copies;
  for (const Copy& copy : {Copy{kBigsDecoder, kBigsWords},
                           Copy{"cls.predictions.decoder.bias", "cls.predictions.bias"}}) {
    if (copy.name == kBigsDecoder && !config.tie_word_embeddings) continue;
    if (shapes.contains(copy.name) && shapes.contains(copy.original)) copies.push_back(copy);
  }
  return copies;
}

absl::Status CheckShapes(const std::vector<TensorSpec>& specs, const std::vector<Copy>& copies,
                         const ShapeMap& shapes) {
  ShapeMap left = shapes;
  for (const Copy& copy : copies) {
    HIPPODROME_RETURN_IF_ERROR(
        TakeShapes({{copy.name, DType::kF32, shapes.at(copy.original)}}, left));
  }
  HIPPODROME_RETURN_IF_ERROR(TakeShapes(specs, left));
  return CheckNoneLeft(left, "this BiGS model");
}

absl::Status CheckCopies(const std::vector<Copy>& copies, BigsCheckpoint& checkpoint) {
  for (const Copy& copy : copies) {
    HIPPODROME_ASSIGN_OR_RETURN(const bool equal, checkpoint.Equal(copy.name, copy.original));
    if (equal) continue;
    const char* advice =
        copy.name == kBigsDecoder ? " unless the config says \"tie_word_embeddings\": false" : "";
    return InvalidArgument("tensor '" + copy.name + "' differs from '" + copy.original +
                           "'; expected a copy of it" + advice);
  }
  return absl::OkStatus();
}

BigsHints Hints(const BigsCheckpoint& checkpoint, const std::string& config_json,
                const ConvertOptions& options) {
  return {.config_json = config_json,
          .preset = options.preset,
          .attention_heads = options.attention_heads,
          .layer_gelu = options.layer_gelu,
          .pad_to = options.pad_to,
          .flax = checkpoint.flax()};
}

}  // namespace

absl::StatusOr<PreparedModel> PrepareBigs(std::unique_ptr<CheckpointSource> source,
                                          const std::string& config_json,
                                          const ConvertOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(BigsCheckpoint checkpoint, BigsCheckpoint::Make(std::move(source)));
  const ShapeMap& shapes = checkpoint.shapes();
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config,
                              DecideBigsConfig(shapes, Hints(checkpoint, config_json, options)));
  const std::vector<Copy> copies = ListCopies(shapes, config);
  PreparedModel model{
      .specs = BigsTensorSpecs(config, options.matrix_dtype, FindExtras(shapes)),
      .config_json = ToJson(config),
      .summary = std::string(Name(config.head)) + ", " + std::to_string(config.num_hidden_layers) +
                 " layers, hidden_size " + std::to_string(config.hidden_size),
      .vocab_size = config.vocab_size,
  };
  HIPPODROME_RETURN_IF_ERROR(CheckShapes(model.specs, copies, shapes));
  HIPPODROME_RETURN_IF_ERROR(CheckExpansion(model.specs, checkpoint.file_bytes()));
  HIPPODROME_RETURN_IF_ERROR(CheckCopies(copies, checkpoint));
  model.parameters = CountParameters(model.specs);
  model.tensors = std::make_unique<BigsCheckpoint>(std::move(checkpoint));
  return model;
}

}  // namespace hippodrome
