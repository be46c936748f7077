#include "engine/state/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "engine/base/field_error.h"
#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/base/xxh3.h"
#include "engine/checkpoint/finite_values.h"
#include "engine/checkpoint/safetensors_header.h"

namespace hippodrome {
namespace {

constexpr char kStateFormat[] = "hippodrome.state";
constexpr char kStateVersion[] = "1";
constexpr char kTokens[] = "tokens";
constexpr size_t kHeadRoom = size_t{64} << 10;  // enough for the header of most models
constexpr size_t kSealRoom = 512;               // enough for checksum and signature in it

using Metadata = std::map<std::string, std::string>;
using Tensors = std::map<std::string, TensorView>;

// ---- What checksum and signature are of --------------------------------------------------------

class CanonicalForm {
 public:
  CanonicalForm(const Metadata& metadata, const Tensors& tensors) {
    std::string entries;
    for (const auto& [name, value] : metadata) {
      if (name == "checksum" || name == "signature") continue;
      entries += fmt::format("{} {} {} {}\n", name.size(), name, value.size(), value);
    }
    texts_.reserve(1 + tensors.size());  // parts_ point into them
    Add(std::move(entries));
    for (const auto& [name, tensor] : tensors) {
      Add(fmt::format("{} {} {} {}\n", name.size(), name, Name(tensor.dtype),
                      DimensionsText(tensor.shape)));
      parts_.push_back(tensor.data);
    }
  }

  std::span<const std::span<const std::byte>> parts() const { return parts_; }

  std::string Checksum() const {
    Xxh3 xxh3;
    for (const std::span<const std::byte> part : parts_) xxh3.Add(part);
    return xxh3.Hex();
  }

 private:
  void Add(std::string text) {
    texts_.push_back(std::move(text));
    parts_.push_back(std::as_bytes(std::span(texts_.back())));
  }

  std::vector<std::string> texts_;
  std::vector<std::span<const std::byte>> parts_;
};

// In a time that does not depend on where they differ.
bool SameText(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

// ---- Metadata ----------------------------------------------------------------------------------

// What one file has and another has not.
struct FileForm {
  bool lossy = false;
  bool tokens = false;
  int64_t pending = 0;                    // tokens
  std::vector<int64_t> checkpoints = {};  // the last ones of the state: pending tokens of each
};

std::span<const Checkpoint> CheckpointsOf(const SavedState& state, const FileForm& form) {
  return std::span(state.checkpoints).last(form.checkpoints.size());
}

std::string PositionsOf(std::span<const Checkpoint> checkpoints) {
  std::string positions;
  for (const Checkpoint& checkpoint : checkpoints) {
    positions += (positions.empty() ? "" : " ") + std::to_string(checkpoint.position);
  }
  return positions;
}

Metadata MetadataOf(const SavedState& state, const FileForm& form) {
  Metadata metadata = {{"format", kStateFormat},
                       {"version", kStateVersion},
                       {"model", state.model},
                       {"arithmetic", state.arithmetic},
                       {"position", std::to_string(state.position)},
                       {"seed", std::to_string(state.seed)},
                       {"created", std::to_string(state.created)}};
  if (state.last_token) metadata["last_token"] = std::to_string(*state.last_token);
  if (state.first_row > 0) metadata["first_row"] = std::to_string(state.first_row);
  if (state.prompt_tokens > 0) metadata["prompt_tokens"] = std::to_string(state.prompt_tokens);
  if (form.lossy) metadata["lossy"] = "true";
  if (!state.exact) metadata["exact"] = "false";
  if (!form.checkpoints.empty()) metadata["checkpoints"] = PositionsOf(CheckpointsOf(state, form));
  if (!state.pending_text.empty()) {
    metadata["pending_text"] = absl::BytesToHexString(state.pending_text);
  }
  return metadata;
}

absl::StatusOr<std::string> Required(const Metadata& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  if (found == metadata.end()) return FieldError(name, "missing");
  return found->second;
}

absl::Status Expect(const Metadata& metadata, const std::string& name,
                    const std::string& expected) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string value, Required(metadata, name));
  if (value == expected) return absl::OkStatus();
  return FieldError(name, "\"" + OneLine(value) + "\", expected \"" + expected + "\"");
}

// The one way of writing a number, so that equal states are equal bytes.
template <typename Number>
absl::StatusOr<Number> ParseNumber(const std::string& name, std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || std::to_string(number) != text) {
    return FieldError(name, "\"" + OneLine(text) + "\" is not a number of its range");
  }
  return number;
}

template <typename Number>
absl::StatusOr<Number> NumberIn(const Metadata& metadata, const std::string& name) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, Required(metadata, name));
  return ParseNumber<Number>(name, text);
}

// Whether a label is there, which is always `text`.
absl::StatusOr<bool> HasLabel(const Metadata& metadata, const std::string& name,
                              const std::string& text) {
  if (!metadata.contains(name)) return false;
  HIPPODROME_RETURN_IF_ERROR(Expect(metadata, name, text));
  return true;
}

absl::StatusOr<std::vector<int64_t>> ReadCheckpoints(const Metadata& metadata) {
  const std::string name = "checkpoints";
  std::vector<int64_t> positions;
  const auto found = metadata.find(name);
  if (found == metadata.end()) return positions;
  std::string_view rest = found->second;
  for (bool more = true; more;) {
    if (std::ssize(positions) == kMaxCheckpoints) {
      return FieldError(name, fmt::format("more than {}", kMaxCheckpoints));
    }
    const size_t space = rest.find(' ');
    HIPPODROME_ASSIGN_OR_RETURN(const int64_t position,
                                ParseNumber<int64_t>(name, rest.substr(0, space)));
    positions.push_back(position);
    more = space != std::string_view::npos;
    if (more) rest.remove_prefix(space + 1);
  }
  return positions;
}

// In lower case alone, and never empty: one way of writing them too.
absl::StatusOr<std::string> ReadPendingText(const Metadata& metadata) {
  const auto found = metadata.find("pending_text");
  if (found == metadata.end()) return std::string();
  const std::string& hex = found->second;
  if (hex.size() > 2 * kMaxPendingText) {
    return FieldError("pending_text", fmt::format("{} digits, expected at most {}", hex.size(),
                                                  2 * kMaxPendingText));
  }
  if (hex.empty() || hex.size() % 2 != 0 ||
      hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return FieldError("pending_text", "expected bytes, of two hexadecimal digits in lower case");
  }
  return absl::HexStringToBytes(hex);
}

absl::StatusOr<StateFileSummary> ReadMetadata(const Metadata& metadata) {
  StateFileSummary summary;
  HIPPODROME_ASSIGN_OR_RETURN(summary.model, Required(metadata, "model"));
  HIPPODROME_ASSIGN_OR_RETURN(summary.arithmetic, Required(metadata, "arithmetic"));
  HIPPODROME_ASSIGN_OR_RETURN(summary.lossy, HasLabel(metadata, "lossy", "true"));
  HIPPODROME_ASSIGN_OR_RETURN(const bool inexact, HasLabel(metadata, "exact", "false"));
  summary.exact = !inexact;
  HIPPODROME_ASSIGN_OR_RETURN(summary.position, NumberIn<int64_t>(metadata, "position"));
  HIPPODROME_ASSIGN_OR_RETURN(summary.seed, NumberIn<uint64_t>(metadata, "seed"));
  HIPPODROME_ASSIGN_OR_RETURN(summary.created, NumberIn<int64_t>(metadata, "created"));
  if (metadata.contains("last_token")) {
    HIPPODROME_ASSIGN_OR_RETURN(summary.last_token, NumberIn<int32_t>(metadata, "last_token"));
  }
  if (metadata.contains("first_row")) {
    HIPPODROME_ASSIGN_OR_RETURN(summary.first_row, NumberIn<int64_t>(metadata, "first_row"));
    if (summary.first_row < 1 || summary.first_row > summary.position) {
      return FieldError("first_row",
                        fmt::format("{}, expected 1 to {}", summary.first_row, summary.position));
    }
  }
  if (metadata.contains("prompt_tokens")) {
    HIPPODROME_ASSIGN_OR_RETURN(summary.prompt_tokens,
                                NumberIn<int64_t>(metadata, "prompt_tokens"));
  }
  HIPPODROME_ASSIGN_OR_RETURN(summary.checkpoints, ReadCheckpoints(metadata));
  HIPPODROME_ASSIGN_OR_RETURN(summary.pending_text, ReadPendingText(metadata));
  return summary;
}

absl::Status CheckSignature(const SafetensorsIndex& index, const StateSigner& sign) {
  if (!sign) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const std::string signature, Required(index.metadata, "signature"));
  const CanonicalForm form(index.metadata, index.tensors);
  if (SameText(signature, sign(form.parts()))) return absl::OkStatus();
  return FieldError("signature", "it is not that of this server's key");
}

absl::Status CheckChecksum(const SafetensorsIndex& index) {
  return Expect(index.metadata, "checksum",
                CanonicalForm(index.metadata, index.tensors).Checksum());
}

// ---- Tensors -----------------------------------------------------------------------------------

void AddArrays(const std::string& prefix, const LayerLayout& layer, DType dtype, int64_t pending,
               std::vector<TensorSpec>& specs) {
  for (const StateArray& array : layer.arrays) {
    if (array.pending && pending == 0) continue;
    specs.push_back({prefix + array.name, dtype, array.Of(pending).shape});
  }
}

// Those of a file of `layout`, in the order in which they are written: of a state of so many
// tokens, the rows from `first_row` on.
std::vector<TensorSpec> TensorsOf(const StateLayout& layout, int64_t position, int64_t first_row,
                                  const FileForm& form) {
  const DType dtype = form.lossy ? DType::kBF16 : DType::kF32;
  std::vector<TensorSpec> specs;
  if (form.tokens) specs.push_back({kTokens, DType::kI32, {position}});
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerLayout& layer = layout.layers[i];
    AddArrays(LayerPrefix(i), layer, dtype, form.pending, specs);
    if (layer.row_width == 0) continue;
    for (const char* rows : {"keys", "values"}) {
      specs.push_back({LayerPrefix(i) + rows, dtype, {position - first_row, layer.row_width}});
    }
  }
  for (size_t j = 0; j < form.checkpoints.size(); ++j) {
    for (size_t i = 0; i < layout.layers.size(); ++i) {
      AddArrays(CheckpointPrefix(j) + LayerPrefix(i), layout.layers[i], dtype, form.checkpoints[j],
                specs);
    }
  }
  return specs;
}

// Calls visit(numbers) for each in that order, but for the tokens.
template <typename Visit>
void VisitNumbers(const SavedState& state, const FileForm& form, const Visit& visit) {
  for (const SavedLayer& layer : state.layers) {
    for (const auto& array : layer.arrays) visit(array);
    if (layer.keys.empty()) continue;
    visit(layer.keys);
    visit(layer.values);
  }
  for (const Checkpoint& checkpoint : CheckpointsOf(state, form)) {
    for (const LayerArrays& arrays : *checkpoint.layers) {
      for (const auto& array : arrays) visit(array);
    }
  }
}

void AppendNumbers(const std::vector<float>& numbers, bool lossy, std::string& file) {
  if (!lossy) {
    file.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    return;
  }
  std::vector<BF16> rounded(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) rounded[i] = ToBF16(numbers[i]);
  file.append(reinterpret_cast<const char*>(rounded.data()), rounded.size() * sizeof(BF16));
}

// All that follows the header, with room for it.
std::string DataOf(const SavedState& state, const FileForm& form) {
  size_t bytes = kHeadRoom + state.tokens.size() * sizeof(int32_t);
  VisitNumbers(state, form, [&](const std::vector<float>& numbers) {
    bytes += numbers.size() * (form.lossy ? sizeof(BF16) : sizeof(float));
  });
  std::string data;
  data.reserve(bytes);
  if (form.tokens) {
    data.append(reinterpret_cast<const char*>(state.tokens.data()),
                state.tokens.size() * sizeof(int32_t));
  }
  VisitNumbers(state, form, [&](const std::vector<float>& numbers) {
    AppendNumbers(numbers, form.lossy, data);
  });
  return data;
}

// Views of `data`, in which they lie side by side.
absl::StatusOr<Tensors> ViewsOf(const std::vector<TensorSpec>& specs, const std::string& data) {
  Tensors views;
  std::span<const std::byte> rest = std::as_bytes(std::span(data));
  for (const TensorSpec& spec : specs) {
    HIPPODROME_ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(spec.dtype, spec.shape));
    views[spec.name] = {spec.name, spec.dtype, spec.shape, rest.first(bytes)};
    rest = rest.subspan(bytes);
  }
  return views;
}

// The tensors are those of `specs` and no others, and their numbers are finite.
absl::Status CheckTensors(const Tensors& tensors, const std::vector<TensorSpec>& specs) {
  for (const TensorSpec& spec : specs) {
    const auto found = tensors.find(spec.name);
    if (found == tensors.end()) return FieldError(spec.name, "missing");
    const TensorView& tensor = found->second;
    if (tensor.dtype != spec.dtype || tensor.shape != spec.shape) {
      return FieldError(spec.name, fmt::format("{} {}, expected {} {}", Name(tensor.dtype),
                                               DimensionsText(tensor.shape), Name(spec.dtype),
                                               DimensionsText(spec.shape)));
    }
    HIPPODROME_RETURN_IF_ERROR(CheckFinite(tensor));
  }
  if (tensors.size() == specs.size()) return absl::OkStatus();
  std::map<std::string, bool> known;
  for (const TensorSpec& spec : specs) known[spec.name] = true;
  auto other = tensors.begin();
  while (known.contains(other->first)) ++other;
  return FieldError(OneLine(other->first), "the model has no such tensor");
}

// Of the layers whose names begin so; as many as a state can have, where the file says that there
// are others.
int64_t PendingIn(const Tensors& tensors, const std::string& prefix, int64_t position) {
  for (auto found = tensors.lower_bound(prefix);
       found != tensors.end() && found->first.starts_with(prefix); ++found) {
    const TensorView& tensor = found->second;
    if (!found->first.ends_with(".pending") || tensor.shape.empty()) continue;
    return std::clamp<int64_t>(tensor.shape[0], 1, std::max<int64_t>(1, position % kCaptureTokens));
  }
  return 0;
}

absl::StatusOr<LayerArrays> ReadArrays(const Tensors& tensors, const std::string& prefix,
                                       const LayerLayout& layout) {
  LayerArrays arrays;
  for (const StateArray& array : layout.arrays) {
    const auto found = tensors.find(prefix + array.name);
    if (found == tensors.end()) {  // nothing is pending
      arrays.emplace_back();
      continue;
    }
    HIPPODROME_ASSIGN_OR_RETURN(std::vector<float> numbers, ToFloats(found->second));
    arrays.push_back(std::move(numbers));
  }
  return arrays;
}

absl::Status ReadCheckpointArrays(const Tensors& tensors, const StateLayout& layout,
                                  const std::vector<int64_t>& positions, SavedState& state) {
  for (size_t j = 0; j < positions.size(); ++j) {
    std::vector<LayerArrays> layers;
    for (size_t i = 0; i < layout.layers.size(); ++i) {
      HIPPODROME_ASSIGN_OR_RETURN(
          LayerArrays arrays,
          ReadArrays(tensors, CheckpointPrefix(j) + LayerPrefix(i), layout.layers[i]));
      layers.push_back(std::move(arrays));
    }
    state.checkpoints.push_back(
        {positions[j], std::make_shared<const std::vector<LayerArrays>>(std::move(layers))});
  }
  return absl::OkStatus();
}

// Those of the file, which CheckTensors() found to be those of the layout.
absl::Status ReadNumbers(const Tensors& tensors, const StateLayout& layout, SavedState& state) {
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const std::string prefix = LayerPrefix(i);
    SavedLayer& layer = state.layers.emplace_back();
    HIPPODROME_ASSIGN_OR_RETURN(layer.arrays, ReadArrays(tensors, prefix, layout.layers[i]));
    if (layout.layers[i].row_width == 0) continue;
    HIPPODROME_ASSIGN_OR_RETURN(layer.keys, ToFloats(tensors.at(prefix + "keys")));
    HIPPODROME_ASSIGN_OR_RETURN(layer.values, ToFloats(tensors.at(prefix + "values")));
  }
  return absl::OkStatus();
}

void ReadTokenIds(const Tensors& tensors, SavedState& state) {
  const auto found = tensors.find(kTokens);
  if (found == tensors.end()) return;
  state.tokens.resize(found->second.data.size() / sizeof(int32_t));
  std::memcpy(state.tokens.data(), found->second.data.data(), found->second.data.size());
}

absl::StatusOr<SafetensorsIndex> ParseStateFile(std::string_view bytes) {
  HIPPODROME_ASSIGN_OR_RETURN(SafetensorsIndex index,
                              ParseSafetensors(std::as_bytes(std::span(bytes))));
  HIPPODROME_RETURN_IF_ERROR(Expect(index.metadata, "format", kStateFormat));
  HIPPODROME_RETURN_IF_ERROR(Expect(index.metadata, "version", kStateVersion));
  return index;
}

// The last checkpoints that a file of `form` has room for, as FileForm says.
absl::StatusOr<std::vector<int64_t>> CheckpointsThatFit(const SavedState& state,
                                                        const StateLayout& layout, FileForm form,
                                                        size_t most_bytes) {
  for (const Checkpoint& checkpoint : state.checkpoints) {
    form.checkpoints.push_back(PendingTokens(checkpoint, layout));
  }
  for (; !form.checkpoints.empty(); form.checkpoints.erase(form.checkpoints.begin())) {
    HIPPODROME_ASSIGN_OR_RETURN(
        const SafetensorsHead head,
        MakeSafetensorsHead(TensorsOf(layout, state.position, state.first_row, form),
                            MetadataOf(state, form)));
    if (head.text.size() + kSealRoom + head.data_size <= most_bytes) break;
  }
  return form.checkpoints;
}

}  // namespace

absl::StatusOr<std::string> WriteStateFile(const SavedState& state, const StateLayout& layout,
                                           const StateFileOptions& options) {
  HIPPODROME_RETURN_IF_ERROR(CheckState(state, layout));
  FileForm form{.lossy = options.lossy || state.lossy,
                .tokens = options.tokens && !state.tokens.empty(),
                .pending = PendingTokens(state, layout)};
  HIPPODROME_ASSIGN_OR_RETURN(form.checkpoints,
                              CheckpointsThatFit(state, layout, form, options.most_bytes));
  const std::vector<TensorSpec> specs = TensorsOf(layout, state.position, state.first_row, form);
  std::string data = DataOf(state, form);
  HIPPODROME_ASSIGN_OR_RETURN(const Tensors views, ViewsOf(specs, data));
  HIPPODROME_RETURN_IF_ERROR(CheckTensors(views, specs));
  Metadata metadata = MetadataOf(state, form);
  const CanonicalForm canonical(metadata, views);
  if (options.sign) metadata["signature"] = options.sign(canonical.parts());
  metadata["checksum"] = canonical.Checksum();
  HIPPODROME_ASSIGN_OR_RETURN(const SafetensorsHead head, MakeSafetensorsHead(specs, metadata));
  data.insert(0, head.text);
  return data;
}

absl::StatusOr<SavedState> ReadStateFile(std::string_view bytes, const StateLayout& layout,
                                         const StateFileLimits& limits) {
  if (bytes.size() > limits.most_bytes) {
    return FieldError(
        "state", fmt::format("{} bytes, expected at most {}", bytes.size(), limits.most_bytes));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const SafetensorsIndex index, ParseStateFile(bytes));
  HIPPODROME_RETURN_IF_ERROR(CheckChecksum(index));
  HIPPODROME_RETURN_IF_ERROR(CheckSignature(index, limits.sign));
  HIPPODROME_ASSIGN_OR_RETURN(StateFileSummary said, ReadMetadata(index.metadata));
  HIPPODROME_RETURN_IF_ERROR(CheckModel(said.model, layout));
  SavedState state{.model = std::move(said.model),
                   .arithmetic = std::move(said.arithmetic),
                   .lossy = said.lossy,
                   .exact = said.exact,
                   .position = said.position,
                   .first_row = said.first_row,
                   .prompt_tokens = said.prompt_tokens,
                   .last_token = said.last_token,
                   .seed = said.seed,
                   .created = said.created,
                   .pending_text = std::move(said.pending_text)};
  FileForm form{.lossy = state.lossy,
                .tokens = index.tensors.contains(kTokens),
                .pending = PendingIn(index.tensors, "layers.", state.position)};
  for (size_t j = 0; j < said.checkpoints.size(); ++j) {
    form.checkpoints.push_back(PendingIn(index.tensors, CheckpointPrefix(j), said.checkpoints[j]));
  }
  HIPPODROME_RETURN_IF_ERROR(
      CheckTensors(index.tensors, TensorsOf(layout, state.position, state.first_row, form)));
  ReadTokenIds(index.tensors, state);
  HIPPODROME_RETURN_IF_ERROR(ReadNumbers(index.tensors, layout, state));
  HIPPODROME_RETURN_IF_ERROR(ReadCheckpointArrays(index.tensors, layout, said.checkpoints, state));
  HIPPODROME_RETURN_IF_ERROR(CheckState(state, layout));
  return state;
}

bool HasStateFormat(const std::map<std::string, std::string>& metadata) {
  const auto format = metadata.find("format");
  return format != metadata.end() && format->second == kStateFormat;
}

absl::StatusOr<StateFileSummary> SummarizeStateFile(std::string_view bytes) {
  HIPPODROME_ASSIGN_OR_RETURN(const SafetensorsIndex index, ParseStateFile(bytes));
  HIPPODROME_RETURN_IF_ERROR(CheckChecksum(index));
  HIPPODROME_ASSIGN_OR_RETURN(StateFileSummary summary, ReadMetadata(index.metadata));
  HIPPODROME_ASSIGN_OR_RETURN(summary.checksum, Required(index.metadata, "checksum"));
  if (index.metadata.contains("signature")) summary.signature = index.metadata.at("signature");
  for (const auto& [name, tensor] : index.tensors) {
    summary.tensors.push_back({name, tensor.dtype, tensor.shape});
  }
  return summary;
}

}  // namespace hippodrome
