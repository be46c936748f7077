#include "server/handlers/encoding_submit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hippodrome {

std::vector<int32_t> AllRows(const EncodedText& text) {
  std::vector<int32_t> rows(text.ids.size());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

EncoderRequest NewRequest(EncodedText text, EncoderTask task, std::vector<int32_t> rows) {
  return {.ids = std::move(text.ids),
          .types = std::move(text.types),
          .task = task,
          .rows = std::move(rows)};
}

int64_t CountTokens(const std::vector<EncoderRequest>& requests) {
  int64_t tokens = 0;
  for (const EncoderRequest& request : requests) tokens += std::ssize(request.ids);
  return tokens;
}

absl::Status CheckFinite(const std::vector<EncoderOutput>& outputs) {
  for (const EncoderOutput& output : outputs) {
    const bool finite = std::all_of(output.values.begin(), output.values.end(),
                                    [](float value) { return std::isfinite(value); });
    if (!finite) return Internal("the model's output has values that are not numbers");
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
