#include "engine/state/saved_state.h"

#include <fmt/format.h>

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

// `tokens`: of which there are rows.
absl::Status CheckLayer(const std::string& prefix, const SavedLayer& layer, int64_t tokens,
                        const LayerLayout& layout) {
  HIPPODROME_RETURN_IF_ERROR(
      CheckSizeOf(prefix + "arrays", layer.arrays.size(), std::ssize(layout.arrays)));
  for (size_t i = 0; i < layout.arrays.size(); ++i) {
    HIPPODROME_RETURN_IF_ERROR(CheckSizeOf(prefix + layout.arrays[i].name, layer.arrays[i].size(),
                                           Elements(layout.arrays[i].shape)));
  }
  const int64_t rows = tokens * layout.row_width;
  HIPPODROME_RETURN_IF_ERROR(CheckSizeOf(prefix + "keys", layer.keys.size(), rows));
  return CheckSizeOf(prefix + "values", layer.values.size(), rows);
}

}  // namespace

absl::Status CheckModel(const std::string& model, const StateLayout& layout) {
  if (model == layout.model) return absl::OkStatus();
  return FailedPrecondition("model: the state is of " + OneLine(model) + ", but this model is " +
                            layout.model);
}

absl::Status CheckState(const SavedState& state, const StateLayout& layout) {
  HIPPODROME_RETURN_IF_ERROR(CheckModel(state.model, layout));
  HIPPODROME_RETURN_IF_ERROR(CheckPosition(state, layout));
  HIPPODROME_RETURN_IF_ERROR(CheckIds(state, layout));
  HIPPODROME_RETURN_IF_ERROR(CheckSizeOf("layers", state.layers.size(), std::ssize(layout.layers)));
  for (size_t i = 0; i < state.layers.size(); ++i) {
    HIPPODROME_RETURN_IF_ERROR(CheckLayer(LayerPrefix(i), state.layers[i],
                                          state.position - state.first_row, layout.layers[i]));
  }
  return absl::OkStatus();
}

std::string LayerPrefix(size_t layer) { return fmt::format("layers.{}.", layer); }

int64_t Elements(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

std::string Arithmetic(const SequenceBackend& backend, DType weights, int64_t window) {
  const std::string name = backend.name();
  return fmt::format("{}{}{} {}{}", name, name == "cpu" ? " " : "",
                     name == "cpu" ? CpuInstructionSet() : "",
                     weights == DType::kBF16 ? "bf16" : "f32",
                     window > 0 ? fmt::format(" window {}", window) : "");
}

}  // namespace hippodrome
