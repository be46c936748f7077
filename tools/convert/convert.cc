#include "tools/convert/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "engine/config/bigs_config.h"
#include "kernels/quantized_group.h"
#include "tools/command_line/text_file.h"
#include "tools/convert/model_card.h"
#include "tools/convert/models/bigs_names.h"
#include "tools/convert/models/bigs_presets.h"
#include "tools/convert/models/prepare_model.h"
#include "tools/convert/models/shape_map.h"
#include "tools/convert/staged_directory.h"
#include "tools/convert/tokenizer_files.h"

namespace hippodrome {
namespace {

constexpr uint64_t kChunk = uint64_t{4} << 20;  // elements

int64_t TotalBytes(const std::vector<TensorSpec>& specs) {
  int64_t bytes = 0;
  for (const TensorSpec& spec : specs) {
    bytes += Elements(spec) * static_cast<int64_t>(SizeOf(spec.dtype));
  }
  return bytes;
}

class TensorStream {
 public:
  TensorStream(TensorReader& reader, SafetensorsWriter& writer, int64_t total,
               const ConvertProgress& progress)
      : reader_(reader), writer_(writer), total_(total), progress_(progress) {}

  absl::Status Copy(const TensorSpec& spec) {
    const auto elements = static_cast<uint64_t>(Elements(spec));
    const uint64_t chunk = ChunkOf(spec);
    std::vector<BF16> scales;
    for (uint64_t first = 0; first < elements; first += chunk) {
      floats_.resize(std::min(chunk, elements - first));
      HIPPODROME_RETURN_IF_ERROR(reader_.Read(spec.name, first, floats_));
      HIPPODROME_RETURN_IF_ERROR(IsQuantized(spec.dtype) ? AppendQuantized(spec, first, scales)
                                                         : AppendFloats(spec.dtype));
    }
    return Append(std::as_bytes(std::span(scales)));
  }

 private:
  // Elements that are read together: whole rows where they are quantised.
  static uint64_t ChunkOf(const TensorSpec& spec) {
    if (!IsQuantized(spec.dtype)) return kChunk;
    const auto columns = static_cast<uint64_t>(spec.shape[1]);
    return std::max(kChunk / columns, uint64_t{1}) * columns;
  }

  absl::Status AppendFloats(DType dtype) {
    if (dtype != DType::kBF16) return Append(std::as_bytes(std::span(floats_)));
    rounded_.resize(floats_.size());
    std::transform(floats_.begin(), floats_.end(), rounded_.begin(), ToBF16);
    return Append(std::as_bytes(std::span(rounded_)));
  }

  // The integers of floats_, elements from `first` on; their scales go to `scales`.
  absl::Status AppendQuantized(const TensorSpec& spec, uint64_t first, std::vector<BF16>& scales) {
    const auto bad = std::ranges::find_if_not(floats_, [](float x) { return std::isfinite(x); });
    if (bad != floats_.end()) {
      return InvalidArgument(spec.name + ": element " +
                             std::to_string(first + (bad - floats_.begin())) +
                             " is not a finite number");
    }
    const QuantizedRows rows = QuantizeRows(floats_, spec.shape[1], spec.dtype);
    scales.insert(scales.end(), rows.scales.begin(), rows.scales.end());
    return Append(rows.values);
  }

  absl::Status Append(std::span<const std::byte> bytes) {
    done_ += static_cast<int64_t>(bytes.size());
    progress_(done_, total_);
    return writer_.Append(bytes);
  }

  TensorReader& reader_;
  SafetensorsWriter& writer_;
  int64_t total_;
  const ConvertProgress& progress_;
  int64_t done_ = 0;
  std::vector<float> floats_;
  std::vector<BF16> rounded_;
};

// Writes `specs` (of types of weights) in their order through buffers of under 64 MiB, and the
// scales of a matrix.
absl::Status WriteTensors(TensorReader& reader, const std::vector<TensorSpec>& specs,
                          const std::string& path, const ConvertProgress& progress) {
  std::vector<TensorSpec> stored;
  for (const TensorSpec& spec : specs) {
    for (TensorSpec& part : StoredSpecs(spec)) stored.push_back(std::move(part));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer,
                              SafetensorsWriter::Create(path, stored, {{"format", "pt"}}));
  TensorStream stream(reader, *writer, TotalBytes(stored), progress);
  for (const TensorSpec& spec : specs) {
    HIPPODROME_RETURN_IF_ERROR(stream.Copy(spec));
  }
  return writer->Finish();
}

constexpr size_t kLargestConfig = size_t{16} << 20;

// `file`: the checkpoint.
std::string FindConfig(const ConvertOptions& options, const std::string& file) {
  if (!options.config.empty() || !options.preset.empty()) return options.config;
  const auto beside = std::filesystem::path(file).parent_path() / "config.json";
  return std::filesystem::exists(beside) ? beside.string() : "";
}

absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), path + ": " + Message(status));
}

ModelFamily ChooseFamily(const CheckpointSource& source, const std::string& config_json,
                         const std::string& preset) {
  if (!preset.empty()) return BigsPreset(preset).ok() ? ModelFamily::kBigs : ModelFamily::kH3;
  const auto said = ParseModelFamily(config_json);
  if (said.ok() && *said == ModelFamily::kBigs) return ModelFamily::kBigs;
  const bool bigs = std::any_of(source.tensors().begin(), source.tensors().end(),
                                [](const SourceTensor& tensor) { return IsBigsName(tensor.name); });
  return bigs ? ModelFamily::kBigs : ModelFamily::kH3;
}

// What the model was made from, for its card.
std::string Origin(const ConvertOptions& options, const std::string& file,
                   const std::string& config_path) {
  std::string origin = CardFileName(file) + ", by `hippodrome convert`";
  if (!config_path.empty()) origin += " with " + CardFileName(config_path);
  if (!options.preset.empty()) origin += " with the preset `" + options.preset + "`";
  return origin + ".";
}

// A model with what else goes into its directory.
struct Prepared {
  PreparedModel model;
  std::vector<TextFile> tokenizer;
};

// Of the directory that the user names; else that of the source, which may have none.
absl::StatusOr<std::vector<TextFile>> ReadTokenizer(const ConvertOptions& options,
                                                    ModelFamily family, int64_t vocab_size) {
  const std::string& directory = options.tokenizer.empty() ? options.source : options.tokenizer;
  if (!std::filesystem::is_directory(directory) && options.tokenizer.empty()) {
    return std::vector<TextFile>();
  }
  auto files = family == ModelFamily::kBigs ? ReadWordPieceFiles(directory, vocab_size)
                                            : ReadBpeFiles(directory, vocab_size);
  if (absl::IsNotFound(files.status()) && options.tokenizer.empty()) {
    return std::vector<TextFile>();
  }
  return files;
}

absl::StatusOr<Prepared> Prepare(const ConvertOptions& options, const std::string& file,
                                 const std::string& config_json) {
  HIPPODROME_ASSIGN_OR_RETURN(auto source, OpenCheckpoint(file));
  const ModelFamily family = ChooseFamily(*source, config_json, options.preset);
  auto model = family == ModelFamily::kBigs ? PrepareBigs(std::move(source), config_json, options)
                                            : PrepareH3(std::move(source), config_json, options);
  if (!model.ok()) return WithPath(file, model.status());
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<TextFile> tokenizer,
                              ReadTokenizer(options, family, model->vocab_size));
  return Prepared{*std::move(model), std::move(tokenizer)};
}

}  // namespace

absl::StatusOr<ConvertResult> Convert(const ConvertOptions& options,
                                      const ConvertProgress& progress) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string file, FindCheckpoint(options.source));
  const std::string config_path = FindConfig(options, file);
  std::string config_json;
  if (!config_path.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(config_json, ReadSmallFile(config_path, kLargestConfig));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const Prepared source, Prepare(options, file, config_json));
  HIPPODROME_ASSIGN_OR_RETURN(const auto out, StagedDirectory::Create(options.out));
  for (const TextFile& text : source.tokenizer) {
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(out->Add(text.name), text.text));
  }
  const PreparedModel& model = source.model;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string card,
                              ModelCardText({.config_json = model.config_json,
                                             .parameters = model.parameters,
                                             .weights = options.matrix_dtype,
                                             .origin = Origin(options, file, config_path),
                                             .serve = kServeHere}));
  HIPPODROME_RETURN_IF_ERROR(AddModelCard(card, options.out, *out));
  HIPPODROME_RETURN_IF_ERROR(WriteTextFile(out->Add("config.json"), model.config_json + "\n"));
  const absl::Status written =
      WriteTensors(*model.tensors, model.specs, out->Add("model.safetensors"), progress);
  if (!written.ok()) return WithPath(file, written);
  HIPPODROME_RETURN_IF_ERROR(out->Publish());
  return ConvertResult{file, config_path, model.summary, model.parameters};
}

}  // namespace hippodrome
