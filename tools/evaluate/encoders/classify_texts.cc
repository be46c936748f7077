#include "tools/evaluate/encoders/classify_texts.h"

#include <algorithm>
#include <utility>

#include "engine/base/status.h"
#include "engine/models/bigs/encoder_head.h"

namespace hippodrome {

absl::StatusOr<TextLogits> ClassifyTexts(EncoderSession& session, const std::string& what,
                                         const LabelledTexts& texts) {
  TextLogits logits{.labels = LogitsPerAnswer(session.config())};
  std::vector<EncoderRequest> requests;
  for (const LabelledText& text : texts.examples) {
    EncodedText input = session.Encode(text.first, text.second, texts.pairs);
    logits.truncated += input.dropped > 0;
    requests.push_back({.ids = std::move(input.ids), .types = std::move(input.types)});
  }
  logits.values.resize(requests.size() * logits.labels);
  const auto keep = [&](size_t text, const EncoderOutput& output) {
    std::copy(output.values.begin(), output.values.end(),
              logits.values.begin() + static_cast<int64_t>(text) * logits.labels);
  };
  HIPPODROME_RETURN_IF_ERROR(session.Run(what, requests, keep));
  return logits;
}

std::vector<int64_t> LargestOutputs(const TextLogits& logits) {
  std::vector<int64_t> outputs;
  for (auto row = logits.values.begin(); row != logits.values.end(); row += logits.labels) {
    outputs.push_back(std::max_element(row, row + logits.labels) - row);
  }
  return outputs;
}

}  // namespace hippodrome
