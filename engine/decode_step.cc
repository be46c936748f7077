#include "engine/decode_step.h"

#include <algorithm>

namespace hippodrome {

DecodeStep::DecodeStep(Backend& backend, const HybridH3& model, int64_t max_rows)
    : b_(backend),
      model_(model),
      activations_(model.NewActivations(backend, max_rows)),
      ids_(backend.NewIndices(1, max_rows)),
      slots_(backend.NewIndices(1, max_rows)),
      positions_(backend.NewIndices(1, max_rows)),
      logits_(backend.NewTensor(max_rows, model.config().padded_vocab_size)) {}

Tensor DecodeStep::UploadPageTables(std::span<const StepToken> tokens) {
  if (model_.config().attention_layers.empty()) return {};
  size_t width = 1;
  for (const StepToken& t : tokens) width = std::max(width, t.sequence->pages.size());
  if (page_tables_.view.cols < static_cast<int64_t>(width)) {
    page_tables_ = b_.NewIndices(activations_.max_rows(), static_cast<int64_t>(width));
  }
  const Tensor tables = page_tables_.view.Rows(0, static_cast<int64_t>(tokens.size()));
  std::vector<int32_t> rows(tokens.size() * tables.cols);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::vector<int32_t>& pages = tokens[i].sequence->pages;
    std::copy(pages.begin(), pages.end(), rows.begin() + static_cast<int64_t>(i) * tables.cols);
  }
  b_.UploadIndices(rows, tables);
  return tables;
}

Tensor DecodeStep::Run(std::span<const StepToken> tokens, DecodeState& state) {
  std::vector<int32_t> ids, slots, positions;
  for (const StepToken& t : tokens) {
    ids.push_back(t.token);
    slots.push_back(static_cast<int32_t>(t.sequence->slot));
    positions.push_back(static_cast<int32_t>(t.position));
  }
  const auto rows = static_cast<int64_t>(tokens.size());
  const Tensor id_row = ids_.view.Cols(0, rows);
  const StepRows step{.slots = slots_.view.Cols(0, rows),
                      .positions = positions_.view.Cols(0, rows),
                      .page_tables = UploadPageTables(tokens)};
  b_.UploadIndices(ids, id_row);
  b_.UploadIndices(slots, step.slots);
  b_.UploadIndices(positions, step.positions);

  const ActivationRows a = activations_.Rows(rows);
  model_.Embed(b_, id_row, step.positions, a);
  for (int64_t layer = 0; layer < model_.layers(); ++layer) {
    model_.StepLayer(b_, layer, a, step, state);
  }
  const Tensor logits = logits_.view.Rows(0, rows);
  model_.Logits(b_, a, logits);
  return logits;
}

}  // namespace hippodrome
