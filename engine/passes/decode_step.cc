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
      indices_(backend),
      table_width_(model.config().attention_layers.empty() ? 0 : 1),
      logits_(model.NewLogits(backend, max_rows_)),
      chooser_(backend, model.config().vocab_size, max_rows_, indices_) {}

void DecodeStep::AddPageTables(std::span<const StepToken> tokens, int64_t rows) {
  size_t width = 1;
  for (const StepToken& t : tokens) width = std::max(width, t.sequence->pages.size());
  if (table_width_ < static_cast<int64_t>(width)) {
    graphs_.clear();  // they hold narrower tables
    table_width_ = static_cast<int64_t>(std::bit_ceil(width));
  }
  std::vector<int32_t> values(static_cast<size_t>(rows * table_width_));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::vector<int32_t>& pages = tokens[i].sequence->pages;
    std::copy(pages.begin(), pages.end(), values.begin() + static_cast<int64_t>(i) * table_width_);
  }
  indices_.Add(values, rows);
}

int64_t DecodeStep::AddRows(std::span<const StepToken> tokens) {
  const int64_t rows = b_.StepRows(static_cast<int64_t>(tokens.size()));
  std::vector<int32_t> ids(rows, 0), slots(rows, -1), positions(rows, -1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    ids[i] = tokens[i].token;
    slots[i] = static_cast<int32_t>(tokens[i].sequence->slot);
    positions[i] = static_cast<int32_t>(tokens[i].position);
  }
  assert(CheckRange("token", ids, model_.config().padded_vocab_size).ok());
  for (const auto* const row : {&ids, &slots, &positions}) indices_.Add(*row);
  if (table_width_ > 0) AddPageTables(tokens, rows);
  return rows;
}

void DecodeStep::Upload() {
  // With room for steps of all rows, so that this seldom happens.
  const int64_t columns = 3 + table_width_ + kSamplingColumns;
  if (indices_.Upload(max_rows_ * columns)) graphs_.clear();
}

DecodeStep::Inputs DecodeStep::RowsOf(int64_t rows) const {
  return {.rows = rows,
          .ids = indices_[kIds],
          .step = {.slots = indices_[kSlots],
                   .positions = indices_[kPositions],
                   .page_tables = table_width_ > 0 ? indices_[kPageTables] : Tensor{},
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
  const int64_t rows = AddRows(tokens);
  Upload();
  b_.Replay(graphs_[{rows, std::nullopt}], [&] { Run(RowsOf(rows)); });
  return logits_.view.Rows(0, static_cast<int64_t>(tokens.size()));
}

std::vector<TokenChoice> DecodeStep::Next(std::span<const StepToken> tokens,
                                          std::span<const HowToChoose> how) {
  assert(tokens.size() == how.size());
  const int64_t rows = AddRows(tokens);
  const TokenChooser::Kind kind = chooser_.Add(how, rows);
  Upload();
  b_.Replay(graphs_[{rows, kind}], [&] {
    Run(RowsOf(rows));
    chooser_.Run(kind, logits_.view.Rows(0, rows));
  });
  return chooser_.Download(kind, how);
}

std::vector<TokenChoice> DecodeStep::Choose(Tensor logits, std::span<const HowToChoose> how) {
  const TokenChooser::Kind kind = chooser_.Add(how, std::ssize(how));
  Upload();
  chooser_.Run(kind, logits);
  return chooser_.Download(kind, how);
}

}  // namespace hippodrome
