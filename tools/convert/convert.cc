#include "tools/convert/convert.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/status.h"
#include "tools/convert/h3_checkpoint.h"
#include "tools/convert/h3_shapes.h"
#include "tools/convert/random_access_file.h"
#include "tools/convert/staged_directory.h"
#include "tools/convert/tokenizer_files.h"
#include "tools/text_file.h"

namespace hippodrome {
namespace {

constexpr uint64_t kLargestConfig = uint64_t{1} << 20;
constexpr uint64_t kChunk = uint64_t{4} << 20;  // elements

std::string FindConfig(const ConvertOptions& options) {
  if (!options.config.empty() || !options.preset.empty()) return options.config;
  const auto beside = std::filesystem::path(options.source).parent_path() / "config.json";
  return std::filesystem::exists(beside) ? beside.string() : "";
}

absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), path + ": " + Message(status));
}

int64_t Elements(const TensorSpec& spec) {
  int64_t product = 1;
  for (const int64_t size : spec.shape) product *= size;
  return product;
}

int64_t TotalBytes(const std::vector<TensorSpec>& specs) {
  int64_t bytes = 0;
  for (const TensorSpec& spec : specs) {
    bytes += Elements(spec) * static_cast<int64_t>(SizeOf(spec.dtype));
  }
  return bytes;
}

// Views of shared or repeated storage could make a small file fill the disk.
absl::Status CheckExpansion(uint64_t file_bytes, const H3Config& config) {
  const auto total = static_cast<uint64_t>(TotalBytes(H3TensorSpecs(config, DType::kF32)));
  if (total / 4 <= file_bytes) return absl::OkStatus();
  return InvalidArgument("its tensors would take " + std::to_string(total) +
                         " bytes, the file has " + std::to_string(file_bytes) +
                         "; expected at most 4 times the file");
}

// Streams the tensors of a checkpoint into a safetensors file.
class TensorStream {
 public:
  TensorStream(H3Checkpoint& checkpoint, SafetensorsWriter& writer, int64_t total,
               const ConvertProgress& progress)
      : checkpoint_(checkpoint), writer_(writer), total_(total), progress_(progress) {}

  absl::Status Copy(const TensorSpec& spec) {
    const auto elements = static_cast<uint64_t>(Elements(spec));
    for (uint64_t first = 0; first < elements; first += kChunk) {
      floats_.resize(std::min(kChunk, elements - first));
      HIPPODROME_RETURN_IF_ERROR(checkpoint_.Read(spec.name, first, floats_));
      HIPPODROME_RETURN_IF_ERROR(Append(spec.dtype));
      progress_(done_, total_);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Append(DType dtype) {
    std::span<const std::byte> bytes = std::as_bytes(std::span(floats_));
    if (dtype == DType::kBF16) {
      rounded_.resize(floats_.size());
      std::transform(floats_.begin(), floats_.end(), rounded_.begin(), ToBF16);
      bytes = std::as_bytes(std::span(rounded_));
    }
    done_ += static_cast<int64_t>(bytes.size());
    return writer_.Append(bytes);
  }

  H3Checkpoint& checkpoint_;
  SafetensorsWriter& writer_;
  int64_t total_;
  const ConvertProgress& progress_;
  int64_t done_ = 0;
  std::vector<float> floats_;
  std::vector<BF16> rounded_;
};

absl::Status WriteTensors(H3Checkpoint& checkpoint, const std::vector<TensorSpec>& specs,
                          const std::string& path, const ConvertProgress& progress) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer,
                              SafetensorsWriter::Create(path, specs, {{"format", "pt"}}));
  TensorStream stream(checkpoint, *writer, TotalBytes(specs), progress);
  for (const TensorSpec& spec : specs) {
    HIPPODROME_RETURN_IF_ERROR(stream.Copy(spec));
  }
  return writer->Finish();
}

// A checkpoint that fits its configuration.
struct Checked {
  H3Checkpoint checkpoint;
  H3Config config;
};

absl::StatusOr<Checked> OpenChecked(const ConvertOptions& options, const ConfigHints& hints) {
  HIPPODROME_ASSIGN_OR_RETURN(auto source, OpenCheckpoint(options.source));
  const auto check = [&]() -> absl::StatusOr<Checked> {
    HIPPODROME_ASSIGN_OR_RETURN(H3Checkpoint checkpoint, H3Checkpoint::Make(std::move(source)));
    HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, DecideConfig(checkpoint.shapes(), hints));
    HIPPODROME_RETURN_IF_ERROR(CheckShapes(checkpoint.shapes(), config));
    HIPPODROME_RETURN_IF_ERROR(CheckExpansion(checkpoint.file_bytes(), config));
    HIPPODROME_RETURN_IF_ERROR(checkpoint.CheckTiedHead());
    return Checked{std::move(checkpoint), config};
  };
  absl::StatusOr<Checked> checked = check();
  if (!checked.ok()) return WithPath(options.source, checked.status());
  return checked;
}

}  // namespace

absl::StatusOr<ConvertResult> Convert(const ConvertOptions& options,
                                      const ConvertProgress& progress) {
  ConvertResult result;
  result.config_path = FindConfig(options);
  ConfigHints hints{.preset = options.preset, .attention_heads = options.attention_heads};
  if (!result.config_path.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(hints.config_json,
                                ReadSmallFile(result.config_path, kLargestConfig));
  }
  HIPPODROME_ASSIGN_OR_RETURN(Checked source, OpenChecked(options, hints));
  result.config = source.config;

  std::optional<TokenizerFiles> tokenizer;
  if (!options.tokenizer.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(tokenizer,
                                ReadTokenizerFiles(options.tokenizer, result.config.vocab_size));
  }
  const std::vector<TensorSpec> specs = H3TensorSpecs(result.config, options.matrix_dtype);
  for (const TensorSpec& spec : specs) {
    if (!spec.name.ends_with("inv_freq"))
      result.parameters += Elements(spec);  // those are constant
  }

  HIPPODROME_ASSIGN_OR_RETURN(const auto out, StagedDirectory::Create(options.out));
  if (tokenizer) {
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(out->Add("vocab.json"), tokenizer->vocab_json));
    HIPPODROME_RETURN_IF_ERROR(WriteTextFile(out->Add("merges.txt"), tokenizer->merges));
  }
  HIPPODROME_RETURN_IF_ERROR(WriteTextFile(out->Add("config.json"), ToJson(result.config) + "\n"));
  const absl::Status written =
      WriteTensors(source.checkpoint, specs, out->Add("model.safetensors"), progress);
  if (!written.ok()) return WithPath(options.source, written);
  HIPPODROME_RETURN_IF_ERROR(out->Publish());
  return result;
}

}  // namespace hippodrome
