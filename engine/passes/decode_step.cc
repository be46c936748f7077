#include "engine/passes/decode_step.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "engine/base/check_range.h"

namespace hippodrome {

DecodeStep::DecodeStep(Backend& backend, const HybridH3& model, DecodeState& state,
                       int64_t max_rows)
    : b_(backend),
      model_(model),
      state_(state),
      max_rows_(backend.StepRows(max_rows)),
      activations_(model.NewActivations(backend, max_rows_)),
      tokens_(backend.NewIndices(3, max_rows_)),
      logits_(model.NewLogits(backend, max_rows_)),
      chooser_(backend, model.config().vocab_size, max_rows_) {}

Tensor DecodeStep::UploadPageTables(std::span<const StepToken> tokens, int64_t rows) {
  if (model_.config().attention_layers.empty()) return {};
  size_t width = 1;
  for (const StepToken& t : tokens) width = std::max(width, t.sequence->pages.size());
  if (page_tables_.view.cols < static_cast<int64_t>(width)) {
    graphs_.clear();  // they hold the old table
    page_tables_ = b_.NewIndices(max_rows_, static_cast<int64_t>(std::bit_ceil(width)));
  }
  const Tensor tables = page_tables_.view.Rows(0, rows);
  std::vector<int32_t> values(static_cast<size_t>(rows * tables.cols));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::vector<int32_t>& pages = tokens[i].sequence->pages;
    std::copy(pages.begin(), pages.end(), values.begin() + static_cast<int64_t>(i) * tables.cols);
  }
  b_.UploadIndices(values, tables);
  return tables;
}

DecodeStep::Inputs DecodeStep::Upload(std::span<const StepToken> tokens) {
  const int64_t rows = b_.StepRows(static_cast<int64_t>(tokens.size()));
  std::vector<int32_t> ids(rows, 0), slots(rows, -1), positions(rows, -1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    ids[i] = tokens[i].token;
    slots[i] = static_cast<int32_t>(tokens[i].sequence->slot);
    positions[i] = static_cast<int32_t>(tokens[i].position);
  }
  assert(CheckRange("token", ids, model_.config().padded_vocab_size).ok());
  std::vector<int32_t> values = std::move(ids);
  values.insert(values.end(), slots.begin(), slots.end());
  values.insert(values.end(), positions.begin(), positions.end());
  const Tensor all = tokens_.view.Cols(0, rows);
  b_.UploadIndices(values, all);
  return {.rows = rows,
          .ids = all.Rows(0, 1),
          .step = {.slots = all.Rows(1, 1),
                   .positions = all.Rows(2, 1),
                   .page_tables = UploadPageTables(tokens, rows),
                   .window = state_.window()}};
}

void DecodeStep::Run(const Inputs& inputs) {
  const ActivationRows a = activations_.Rows(inputs.rows);
  model_.Embed(b_, inputs.ids, inputs.step.positions, a);
  for (int64_t layer = 0; layer < model_.layers(); ++layer) {
    model_.PassLayer(b_, layer, a, {}, inputs.step, state_.layers());
  }
  model_.Logits(b_, a, logits_.view.Rows(0, inputs.rows));
}

Tensor DecodeStep::Logits(std::span<const StepToken> tokens) {
  const Inputs inputs = Upload(tokens);
  b_.Replay(graphs_[{inputs.rows, std::nullopt}], [&] { Run(inputs); });
  return logits_.view.Rows(0, static_cast<int64_t>(tokens.size()));
}

std::vector<TokenChoice> DecodeStep::Next(std::span<const StepToken> tokens,
                                          std::span<const HowToChoose> how) {
  assert(tokens.size() == how.size());
  const Inputs inputs = Upload(tokens);
  if (!chooser_.Fits(how)) graphs_.clear();  // they hold the old memory
  const TokenChooser::Kind kind = chooser_.Upload(how, inputs.rows);
  b_.Replay(graphs_[{inputs.rows, kind}], [&] {
    Run(inputs);
    chooser_.Run(kind, logits_.view.Rows(0, inputs.rows));
  });
  return chooser_.Download(kind, how);
}

std::vector<TokenChoice> DecodeStep::Choose(Tensor logits, std::span<const HowToChoose> how) {
  if (!chooser_.Fits(how)) graphs_.clear();
  const TokenChooser::Kind kind = chooser_.Upload(how, std::ssize(how));
  chooser_.Run(kind, logits);
  return chooser_.Download(kind, how);
}

}  // namespace hippodrome
