#include "tools/convert/export.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "tools/command_line/text_file.h"
#include "tools/convert/flax/flax_writer.h"
#include "tools/convert/model_card.h"
#include "tools/convert/models/bigs_names.h"
#include "tools/convert/models/bigs_shapes.h"
#include "tools/convert/models/h3_shapes.h"
#include "tools/convert/models/infer_config.h"
#include "tools/convert/models/shape_map.h"
#include "tools/convert/staged_directory.h"
#include "tools/convert/strided_reader.h"
#include "tools/convert/torch/torch_writer.h"

namespace hippodrome {
namespace {

constexpr size_t kLargestVocabulary = size_t{64} << 20;

// ---- The tensors -------------------------------------------------------------------------------

// The shapes of a model that can be exported. Errors: integers.
absl::StatusOr<ShapeMap> ReadShapes(const SafetensorsFile& file) {
  HIPPODROME_RETURN_IF_ERROR(RefuseIntegers(file));
  ShapeMap shapes;
  for (const auto& [name, tensor] : file.tensors()) {
    if (!IsFloat(tensor.dtype)) {
      return InvalidArgument("tensor '" + name + "' is of type " + Name(tensor.dtype) +
                             "; expected F32, F16, BF16 or F64");
    }
    shapes[name] = tensor.shape;
  }
  return shapes;
}

// Those of `specs`, which the file has.
std::vector<TensorView> ListTensors(const SafetensorsFile& file,
                                    const std::vector<TensorSpec>& specs) {
  std::vector<TensorView> tensors;
  for (const TensorSpec& spec : specs) {
    const TensorView* tensor = file.Find(spec.name);
    if (tensor != nullptr) tensors.push_back(*tensor);
  }
  return tensors;
}

// The published names of a model without a head have no prefix.
std::string WithoutPrefix(const BigsConfig& config, const std::string& name) {
  constexpr std::string_view kModel = "bigs.";
  return config.head == EncoderHead::kNone && name.starts_with(kModel) ? name.substr(kModel.size())
                                                                       : name;
}

// A second name for the data of the tensor `name`, if there is one.
void AddTied(const std::string& name, const std::string& tied, std::vector<TensorView>& tensors) {
  for (const TensorView& tensor : tensors) {
    if (tensor.name != name) continue;
    TensorView again = tensor;
    again.name = tied;
    tensors.push_back(std::move(again));
    return;
  }
}

absl::StatusOr<std::vector<TensorView>> H3Tensors(const SafetensorsFile& file,
                                                  const H3Config& config) {
  if (config.mixer != DecoderMixer::kH3) {
    return InvalidArgument(std::string("its mixer is ") + Name(config.mixer) +
                           "; expected h3: there are no published checkpoints of others");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const ShapeMap shapes, ReadShapes(file));
  HIPPODROME_RETURN_IF_ERROR(CheckShapes(shapes, config));
  std::vector<TensorView> tensors = ListTensors(file, H3TensorSpecs(config, DType::kF32));
  const TensorView* head = file.Find(kHead);
  if (head != nullptr && !std::ranges::equal(head->data, file.Find(kWordEmbeddings)->data)) {
    return InvalidArgument(std::string("tensor '") + kHead +
                           "' differs from the embedding; expected a copy of it");
  }
  AddTied(kWordEmbeddings, kHead, tensors);
  return tensors;
}

absl::StatusOr<std::vector<TensorView>> BigsTensors(const SafetensorsFile& file,
                                                    const BigsConfig& config) {
  if (config.block != EncoderBlock::kGated || config.routing != EncoderRouting::kSsm) {
    return InvalidArgument(
        "it is a model of Table 1; expected gated blocks with SSMs: there is no "
        "published code of others");
  }
  HIPPODROME_ASSIGN_OR_RETURN(ShapeMap shapes, ReadShapes(file));
  const auto specs = BigsTensorSpecs(config, DType::kF32, FindExtras(shapes));
  HIPPODROME_RETURN_IF_ERROR(TakeShapes(specs, shapes));
  HIPPODROME_RETURN_IF_ERROR(CheckNoneLeft(shapes, "this BiGS model"));
  return ListTensors(file, specs);
}

// ---- Formats -----------------------------------------------------------------------------------

// A model to be written, and what has been.
struct Job {
  const ExportOptions& options;
  const SafetensorsFile& file;
  const ConvertProgress& progress;
  ExportResult result;

  // Lets the pages of the tensor go.
  void Written(const TensorView& tensor, int64_t total) {
    if (tensor.dtype == DType::kI64) return;  // position_ids, which are not of the file
    result.bytes += static_cast<int64_t>(tensor.data.size());
    progress(result.bytes, total);
    file.Drop(tensor);
  }
};

int64_t DataBytes(const SafetensorsFile& file) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    bytes += static_cast<int64_t>(tensor.data.size());
  }
  return bytes;
}

absl::Status WriteTorch(const std::string& path, const std::vector<TensorView>& tensors, Job& job) {
  job.result.tensors = static_cast<int64_t>(tensors.size());
  const int64_t total = DataBytes(job.file);
  return WriteTorchFile(path, tensors,
                        [&](const TensorView& tensor) { job.Written(tensor, total); });
}

// As published: with tied weights, the buffer of positions and, where there is no head, without
// prefix.
absl::Status WriteBigsTorch(const std::string& path, const BigsConfig& config,
                            std::vector<TensorView> tensors, Job& job) {
  if (config.head == EncoderHead::kMaskedLm) {
    if (config.tie_word_embeddings) AddTied(kBigsWords, kBigsDecoder, tensors);
    AddTied("cls.predictions.bias", "cls.predictions.decoder.bias", tensors);
  }
  std::vector<int64_t> positions(static_cast<size_t>(config.max_position_embeddings));
  std::iota(positions.begin(), positions.end(), 0);
  tensors.push_back({.name = "bigs.embeddings.position_ids",
                     .dtype = DType::kI64,
                     .shape = {1, config.max_position_embeddings},
                     .data = std::as_bytes(std::span(positions))});
  for (TensorView& tensor : tensors) tensor.name = WithoutPrefix(config, tensor.name);
  return WriteTorch(path, tensors, job);
}

absl::Status WriteBigsFlax(const std::string& path, const BigsConfig& config,
                           const std::vector<TensorView>& tensors, Job& job) {
  std::vector<FlaxTensor> arrays;
  for (const TensorView& tensor : tensors) {
    const FlaxPlace place = PlaceInFlax(WithoutPrefix(config, tensor.name), tensor.shape.size());
    arrays.push_back({place.path, tensor, place.transposed});
  }
  job.result.tensors = static_cast<int64_t>(arrays.size());
  const int64_t total = DataBytes(job.file);
  return WriteFlaxFile(path, arrays, [&](const TensorView& tensor) { job.Written(tensor, total); });
}

absl::Status CopyVocabulary(const std::string& model, StagedDirectory& out) {
  const auto text = ReadSmallFile(model + "/vocab.txt", kLargestVocabulary);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  HIPPODROME_RETURN_IF_ERROR(text.status());
  return WriteTextFile(out.Add("vocab.txt"), *text);
}

// How the directory is served: it is in a layout that convert reads.
std::string ServeConverted(DType weights) {
  std::string command = "hippodrome convert . --out MODEL";
  if (weights == DType::kBF16) command += " --dtype bf16";
  return command + " && hippodrome serve --model MODEL";
}

absl::StatusOr<std::string> BigsCard(const std::string& config_json, const Job& job) {
  HIPPODROME_ASSIGN_OR_RETURN(const DType weights, StoredWeights(job.file, kBigsWords));
  return ModelCardText({.config_json = config_json,
                        .parameters = CountParameters(job.file),
                        .weights = weights,
                        .origin = "The model directory " + CardFileName(job.options.model) +
                                  ", by `hippodrome export --format " + Name(job.options.format) +
                                  "`.",
                        .serve = ServeConverted(weights)});
}

absl::Status ExportBigs(const BigsConfig& config, Job& job) {
  const ExportOptions& options = job.options;
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<TensorView> tensors, BigsTensors(job.file, config));
  HIPPODROME_ASSIGN_OR_RETURN(const auto out, StagedDirectory::Create(options.out));
  HIPPODROME_RETURN_IF_ERROR(CopyVocabulary(options.model, *out));
  const std::string config_json = ToJson(config) + "\n";
  HIPPODROME_RETURN_IF_ERROR(WriteTextFile(out->Add("config.json"), config_json));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string card, BigsCard(config_json, job));
  HIPPODROME_RETURN_IF_ERROR(AddModelCard(card, options.out, *out));
  HIPPODROME_RETURN_IF_ERROR(
      options.format == ExportFormat::kFlax
          ? WriteBigsFlax(out->Add("flax_model.msgpack"), config, tensors, job)
          : WriteBigsTorch(out->Add("pytorch_model.bin"), config, tensors, job));
  return out->Publish();
}

absl::Status ExportH3(const H3Config& config, Job& job) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<TensorView> tensors, H3Tensors(job.file, config));
  return WriteTorch(job.options.out, tensors, job);
}

absl::Status CheckFormat(ModelFamily family, const ExportOptions& options) {
  const bool torch = options.format == ExportFormat::kTorch;
  if (torch == (family == ModelFamily::kH3)) return absl::OkStatus();
  return InvalidArgument(
      std::string("--format is ") + Name(options.format) + "; expected " +
      (torch ? "huggingface or flax for a BiGS model" : "torch for an H3 model"));
}

// Errors do not name the directory.
absl::Status ExportModel(ModelFamily family, Job& job) {
  HIPPODROME_RETURN_IF_ERROR(CheckFormat(family, job.options));
  if (family == ModelFamily::kBigs) {
    HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadBigsConfig(job.options.model));
    return ExportBigs(config, job);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, ReadH3Config(job.options.model));
  return ExportH3(config, job);
}

}  // namespace

const char* Name(ExportFormat format) {
  switch (format) {
    case ExportFormat::kTorch:
      return "torch";
    case ExportFormat::kHuggingFace:
      return "huggingface";
    case ExportFormat::kFlax:
      return "flax";
  }
  return "";
}

absl::StatusOr<ExportResult> Export(const ExportOptions& options, const ConvertProgress& progress) {
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(options.model));
  HIPPODROME_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsFile> file,
                              SafetensorsFile::Open(options.model + "/model.safetensors"));
  Job job{.options = options, .file = *file, .progress = progress, .result = {}};
  const absl::Status status = ExportModel(family, job);
  if (status.ok()) return job.result;
  const std::string message = Message(status);
  if (message.starts_with(options.model) || message.starts_with(options.out)) return status;
  return absl::Status(status.code(), options.model + ": " + message);
}

}  // namespace hippodrome
