#include "tools/train/checkpoint/saved_model.h"

#include <algorithm>
#include <optional>
#include <span>

#include "engine/base/durable_files.h"
#include "engine/base/status.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "kernels/dtype.h"
#include "tools/convert/model_card.h"
#include "tools/convert/tokenizer_files.h"

namespace hippodrome {
namespace {

absl::StatusOr<std::vector<TextFile>> TokenizerFiles(const ModelToSave& model) {
  if (model.tokenizer.empty()) return std::vector<TextFile>();
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ParseModelFamily(model.config_json));
  if (family == ModelFamily::kBigs) {
    HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ParseBigsConfig(model.config_json));
    return ReadWordPieceFiles(model.tokenizer, config.vocab_size);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, ParseH3Config(model.config_json));
  return ReadBpeFiles(model.tokenizer, config.vocab_size);
}

absl::Status AppendValues(std::span<const float> values, DType dtype, SafetensorsWriter& writer) {
  if (dtype == DType::kF32) return writer.Append(std::as_bytes(values));
  std::vector<BF16> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), ToBF16);
  return writer.Append(std::as_bytes(std::span(rounded)));
}

absl::Status WriteTensors(const std::string& path, const std::vector<TensorSpec>& tensors,
                          const ReadStateArray& read) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer,
                              SafetensorsWriter::Create(path, tensors, {{"format", "pt"}}));
  for (size_t i = 0; i < tensors.size(); ++i) {
    HIPPODROME_ASSIGN_OR_RETURN(const std::span<const float> values, read(i));
    HIPPODROME_RETURN_IF_ERROR(AppendValues(values, tensors[i].dtype, *writer));
  }
  return writer->Finish();
}

absl::Status WriteFiles(const std::string& folder, const ModelToSave& model,
                        const std::string& readme, const std::vector<TextFile>& tokenizer,
                        const ReadStateArray& read) {
  for (const TextFile& file : tokenizer) {
    HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(folder + "/" + file.name, file.text));
  }
  HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(folder + "/config.json", model.config_json + "\n"));
  HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(folder + "/training.json", model.run_json + "\n"));
  HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(folder + "/" + kModelCardFile, readme));
  return WriteTensors(folder + "/model.safetensors", model.tensors, read);
}

}  // namespace

absl::Status SaveModel(const std::string& directory, const ModelToSave& model,
                       const ReadStateArray& read) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<TextFile> tokenizer, TokenizerFiles(model));
  HIPPODROME_ASSIGN_OR_RETURN(const std::optional<std::string> own, ReadOwnReadme(directory));
  const std::string partial = directory + ".tmp";
  HIPPODROME_RETURN_IF_ERROR(RemoveTree(partial));
  HIPPODROME_RETURN_IF_ERROR(MakeDirectories(partial));
  const absl::Status written =
      WriteFiles(partial, model, own.value_or(model.card), tokenizer, read);
  if (!written.ok()) {
    RemoveTree(partial).IgnoreError();
    return written;
  }
  HIPPODROME_RETURN_IF_ERROR(SyncPath(partial));
  return ReplaceDirectory(partial, directory);
}

}  // namespace hippodrome
