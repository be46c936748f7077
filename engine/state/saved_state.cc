#include "engine/state/saved_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "kernels/cpu_instruction_set.h"

namespace hippodrome {
namespace {

absl::Status CheckSizeOf(const std::string& field, size_t size, int64_t expected) {
  if (std::cmp_equal(size, expected)) return absl::OkStatus();
  return FieldError(field, fmt::format("{} numbers, expected {}", size, expected));
}

absl::Status CheckPosition(const SavedState& state, const StateLayout& layout) {
  // Positions are indices of 32 bits in a backend.
  const int64_t most = layout.longest > 0 ? layout.longest : INT32_MAX;
  if (state.position < 1 || state.position > most) {
    return FieldError("position", fmt::format("{}, expected 1 to {}", state.position, most));
  }
  const int64_t seen = AttentionShape{.window = layout.window}.FirstSeen(state.position);
  if (state.first_row < 0 || state.first_row > seen) {
    return FieldError(
        "first_row",
        fmt::format("{}, expected 0 to {}: {}", state.first_row, seen,
                    layout.window > 0 ? fmt::format("the attention window is {}", layout.window)
                                      : "there is no attention window here"));
  }
  if (state.prompt_tokens < 0 || state.prompt_tokens > state.position) {
    return FieldError("prompt_tokens",
                      fmt::format("{}, expected 0 to {}", state.prompt_tokens, state.position));
  }
  if (state.tokens.empty()) return absl::OkStatus();
  return CheckSizeOf("tokens", state.tokens.size(), state.position);
}

absl::Status CheckIds(const SavedState& state, const StateLayout& layout) {
  const auto exists = [&](int32_t id) { return id >= 0 && id < layout.vocab_size; };
  for (const int32_t id : state.tokens) {
    if (exists(id)) continue;
    return FieldError("tokens", fmt::format("{}, expected 0 to {}", id, layout.vocab_size - 1));
  }
  if (!state.last_token || exists(*state.last_token)) return absl::OkStatus();
  return FieldError("last_token",
                    fmt::format("{}, expected 0 to {}", *state.last_token, layout.vocab_size - 1));
}

// As many as the first layer says that can have any. Nothing is known of the arrays yet.
template <typename Layers, typename ArraysOf>
int64_t FirstPending(const StateLayout& layout, const Layers& layers, const ArraysOf& arrays_of) {
  for (size_t i = 0; i < std::min(layers.size(), layout.layers.size()); ++i) {
    const LayerArrays& arrays = arrays_of(layers[i]);
    const std::vector<StateArray>& expected = layout.layers[i].arrays;
    for (size_t j = 0; j < std::min(arrays.size(), expected.size()); ++j) {
      if (expected[j].pending) return std::ssize(arrays[j]) / expected[j].Of(1).values();
    }
  }
  return 0;
}

absl::Status CheckPending(const std::string& prefix, int64_t pending, int64_t position) {
  if (pending <= position % kCaptureTokens) return absl::OkStatus();
  return FieldError(prefix + "pending", fmt::format("{} tokens, expected at most {} at position {}",
                                                    pending, position % kCaptureTokens, position));
}

// `pending`: tokens.
absl::Status CheckArrays(const std::string& prefix, const LayerArrays& arrays,
                         const LayerLayout& layout, int64_t pending) {
  HIPPODROME_RETURN_IF_ERROR(
      CheckSizeOf(prefix + "arrays", arrays.size(), std::ssize(layout.arrays)));
  for (size_t i = 0; i < layout.arrays.size(); ++i) {
    HIPPODROME_RETURN_IF_ERROR(CheckSizeOf(prefix + layout.arrays[i].name, arrays[i].size(),
                                           layout.arrays[i].Of(pending).values()));
  }
  return absl::OkStatus();
}

// `tokens`: of which there are rows.
absl::Status CheckLayer(const std::string& prefix, const SavedLayer& layer, int64_t tokens,
                        const LayerLayout& layout, int64_t pending) {
  HIPPODROME_RETURN_IF_ERROR(CheckArrays(prefix, layer.arrays, layout, pending));
  const int64_t rows = tokens * layout.row_width;
  HIPPODROME_RETURN_IF_ERROR(CheckSizeOf(prefix + "keys", layer.keys.size(), rows));
  return CheckSizeOf(prefix + "values", layer.values.size(), rows);
}

absl::Status CheckCheckpoints(const SavedState& state, const StateLayout& layout) {
  if (std::ssize(state.checkpoints) > kMaxCheckpoints) {
    return FieldError("checkpoints", fmt::format("{}, expected at most {}",
                                                 state.checkpoints.size(), kMaxCheckpoints));
  }
  if (state.first_row > 0 && !state.checkpoints.empty()) {
    return FieldError("checkpoints", "expected none: the rows that they need were dropped");
  }
  int64_t before = 0;
  for (size_t j = 0; j < state.checkpoints.size(); ++j) {
    const Checkpoint& checkpoint = state.checkpoints[j];
    if (checkpoint.position <= before || checkpoint.position >= state.position) {
      return FieldError("checkpoints", fmt::format("{}, expected {} to {}", checkpoint.position,
                                                   before + 1, state.position - 1));
    }
    before = checkpoint.position;
    const std::string prefix = CheckpointPrefix(j);
    HIPPODROME_RETURN_IF_ERROR(
        CheckSizeOf(prefix + "layers", checkpoint.layers->size(), std::ssize(layout.layers)));
    const int64_t pending = PendingTokens(checkpoint, layout);
    HIPPODROME_RETURN_IF_ERROR(CheckPending(prefix, pending, checkpoint.position));
    for (size_t i = 0; i < layout.layers.size(); ++i) {
      HIPPODROME_RETURN_IF_ERROR(
          CheckArrays(prefix + LayerPrefix(i), (*checkpoint.layers)[i], layout.layers[i], pending));
    }
  }
  return absl::OkStatus();
}

int64_t BytesOf(const LayerArrays& arrays) {
  size_t numbers = 0;
  for (const std::vector<float>& array : arrays) numbers += array.size();
  return static_cast<int64_t>(numbers * sizeof(float));
}

}  // namespace

bool GoesOnExactly(const SavedState& state, const std::string& arithmetic) {
  return state.exact && !state.lossy && state.arithmetic == arithmetic;
}

int64_t BytesOf(const SavedState& state) {
  auto bytes = static_cast<int64_t>(state.tokens.size() * sizeof(int32_t));
  for (const SavedLayer& layer : state.layers) {
    bytes += BytesOf(layer.arrays);
    bytes += static_cast<int64_t>((layer.keys.size() + layer.values.size()) * sizeof(float));
  }
  for (const Checkpoint& checkpoint : state.checkpoints) bytes += BytesOf(checkpoint);
  return bytes;
}

int64_t BytesOf(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const LayerArrays& arrays : *checkpoint.layers) bytes += BytesOf(arrays);
  return bytes;
}

absl::Status CheckModel(const std::string& model, const StateLayout& layout) {
  if (model == layout.model) return absl::OkStatus();
  return FailedPrecondition("model: the state is of " + OneLine(model) + ", but this model is " +
                            layout.model);
}

absl::Status CheckState(const SavedState& state, const StateLayout& layout) {
  HIPPODROME_RETURN_IF_ERROR(CheckModel(state.model, layout));
  HIPPODROME_RETURN_IF_ERROR(CheckPosition(state, layout));
  HIPPODROME_RETURN_IF_ERROR(CheckIds(state, layout));
  if (state.pending_text.size() > kMaxPendingText) {
    return FieldError("pending_text", fmt::format("{} bytes, expected at most {}",
                                                  state.pending_text.size(), kMaxPendingText));
  }
  HIPPODROME_RETURN_IF_ERROR(CheckSizeOf("layers", state.layers.size(), std::ssize(layout.layers)));
  const int64_t pending = PendingTokens(state, layout);
  HIPPODROME_RETURN_IF_ERROR(CheckPending("", pending, state.position));
  for (size_t i = 0; i < state.layers.size(); ++i) {
    HIPPODROME_RETURN_IF_ERROR(CheckLayer(LayerPrefix(i), state.layers[i],
                                          state.position - state.first_row, layout.layers[i],
                                          pending));
  }
  return CheckCheckpoints(state, layout);
}

int64_t PendingTokens(const SavedState& state, const StateLayout& layout) {
  return FirstPending(layout, state.layers,
                      [](const SavedLayer& layer) -> const LayerArrays& { return layer.arrays; });
}

int64_t PendingTokens(const Checkpoint& checkpoint, const StateLayout& layout) {
  return FirstPending(layout, *checkpoint.layers,
                      [](const LayerArrays& arrays) -> const LayerArrays& { return arrays; });
}

std::string LayerPrefix(size_t layer) { return fmt::format("layers.{}.", layer); }

std::string CheckpointPrefix(size_t checkpoint) {
  return fmt::format("checkpoints.{}.", checkpoint);
}

int64_t Elements(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

std::string Arithmetic(const SequenceBackend& backend, DType weights, int64_t window,
                       DType h3_state) {
  const std::string name = backend.name();
  return fmt::format(
      "{}{}{} {}{}{}", name, name == "cpu" ? " " : "", name == "cpu" ? CpuInstructionSet() : "",
      WeightsName(weights), window > 0 ? fmt::format(" window {}", window) : "",
      h3_state != DType::kF32 ? fmt::format(" h3-state {}", WeightsName(h3_state)) : "");
}

}  // namespace hippodrome
