#include "engine/passes/prefill_chunk.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "engine/base/check_range.h"

namespace hippodrome {

PrefillChunk::PrefillChunk(Backend& backend, const HybridH3& model, const PrefillShape& shape)
    : b_(backend),
      model_(model),
      shape_(shape),
      activations_(model.NewActivations(backend, shape_.rows)),
      indices_(backend),
      next_layer_(model.layers()) {}

int64_t PrefillChunk::TokensAt(int64_t start, int64_t prompt_tokens) const {
  return std::min(shape_.grid - start % shape_.grid, prompt_tokens - start);
}

void PrefillChunk::Begin(std::span<const PrefillPart> parts, std::span<const StepToken> steps) {
  assert(!parts.empty());
  next_layer_ = 0;
  parts_.clear();
  captures_.clear();
  steps_ = std::ssize(steps);
  std::vector<int32_t> ids, positions, last, slots;
  for (const PrefillPart& part : parts) {
    const SequencePart added = {.slot = static_cast<int32_t>(part.sequence->slot),
                                .first_row = static_cast<int32_t>(ids.size()),
                                .tokens = static_cast<int32_t>(part.tokens.size()),
                                .start = static_cast<int32_t>(part.start)};
    for (const PrefillCapture& capture : part.captures) {
      const auto tokens = static_cast<int32_t>(capture.position - part.start);
      assert(FitsCapture(added, tokens));
      captures_.push_back(
          {static_cast<int32_t>(parts_.size()), tokens, static_cast<int32_t>(capture.slot)});
    }
    parts_.push_back(added);
    ids.insert(ids.end(), part.tokens.begin(), part.tokens.end());
    for (int32_t i = 0; i < added.tokens; ++i) positions.push_back(added.start + i);
    last.push_back(static_cast<int32_t>(ids.size()) - 1);
  }
  for (const StepToken& step : steps) {
    last.push_back(static_cast<int32_t>(ids.size()));
    ids.push_back(step.token);
    positions.push_back(static_cast<int32_t>(step.position));
    slots.push_back(static_cast<int32_t>(step.sequence->slot));
  }
  assert(rows() <= shape_.rows);
  assert(CheckRange("token", ids, model_.config().padded_vocab_size).ok());
  for (const auto* const row : {&ids, &positions, &last, &slots}) indices_.Add(*row);
  AddPageTables(parts, steps);
  indices_.Upload();
  model_.Embed(b_, indices_[kIds], indices_[kPositions], Rows());
}

void PrefillChunk::AddPageTables(std::span<const PrefillPart> parts,
                                 std::span<const StepToken> steps) {
  if (model_.config().attention_layers.empty()) return;
  std::vector<const SequenceState*> sequences;
  for (const PrefillPart& part : parts) sequences.push_back(part.sequence);
  for (const StepToken& step : steps) sequences.push_back(step.sequence);
  size_t width = 1;
  for (const SequenceState* sequence : sequences) width = std::max(width, sequence->pages.size());
  std::vector<int32_t> values(sequences.size() * width);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const std::vector<int32_t>& pages = sequences[i]->pages;
    std::copy(pages.begin(), pages.end(), values.begin() + static_cast<int64_t>(i * width));
  }
  indices_.Add(values, std::ssize(sequences));
}

void PrefillChunk::Drop(int64_t part) {
  parts_[static_cast<size_t>(part)].slot = -1;
  std::erase_if(captures_, [&](const StateCapture& capture) { return capture.part == part; });
}

void PrefillChunk::RunLayer(DecodeState& state) {
  const auto tables_of = [&](int64_t first, int64_t count) {
    if (model_.config().attention_layers.empty()) return Tensor{};
    return indices_[kPageTables].Rows(first, count);
  };
  const PrefillRows parts = {.parts = {.parts = parts_, .captures = captures_},
                             .page_tables = tables_of(0, this->parts()),
                             .window = state.window()};
  StepRows steps;
  if (steps_ > 0) {
    steps = {.slots = indices_[kSlots],
             .positions = indices_[kPositions].Cols(rows() - steps_, steps_),
             .page_tables = tables_of(this->parts(), steps_),
             .window = state.window()};
  }
  model_.PassLayer(b_, next_layer_++, Rows(), parts, steps, state.layers());
}

void PrefillChunk::LastLogits(Tensor logits) { RowLogits(indices_[kLastRows], logits); }

void PrefillChunk::AllLogits(Tensor logits) const { model_.Logits(b_, Rows(), logits); }

void PrefillChunk::RowLogits(Tensor rows, Tensor logits) {
  const ActivationRows a = Rows();
  if (gathered_.view.rows < rows.cols) {
    gathered_ = {};  // before the larger one
    const auto most = std::bit_ceil(static_cast<uint64_t>(rows.cols));
    gathered_ = b_.NewTensor(static_cast<int64_t>(most), a.r.cols);
  }
  const Tensor gathered = gathered_.view.Rows(0, rows.cols);
  b_.GatherRows(a.r, rows, gathered);
  model_.Logits(b_, {.r = gathered, .u = a.u.Rows(0, rows.cols)}, logits);
}

}  // namespace hippodrome
