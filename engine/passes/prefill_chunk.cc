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
      indices_(backend.NewIndices(3, shape_.rows)),
      page_tables_(backend),
      next_layer_(model.layers()) {}

int64_t PrefillChunk::TokensAt(int64_t start, int64_t prompt_tokens) const {
  return std::min(shape_.grid - start % shape_.grid, prompt_tokens - start);
}

void PrefillChunk::Begin(std::span<const PrefillPart> parts) {
  assert(!parts.empty());
  next_layer_ = 0;
  parts_.clear();
  captures_.clear();
  std::vector<int32_t> ids, positions, last;
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
  assert(rows() <= shape_.rows);
  assert(CheckRange("token", ids, model_.config().padded_vocab_size).ok());
  const Tensor id_row = indices_.view.Rows(0, 1).Cols(0, rows());
  const Tensor position_row = indices_.view.Rows(1, 1).Cols(0, rows());
  b_.UploadIndices(ids, id_row);
  b_.UploadIndices(positions, position_row);
  b_.UploadIndices(last, indices_.view.Rows(2, 1).Cols(0, this->parts()));
  UploadPageTables(parts);
  model_.Embed(b_, id_row, position_row, Rows());
}

void PrefillChunk::UploadPageTables(std::span<const PrefillPart> parts) {
  if (model_.config().attention_layers.empty()) return;
  size_t width = 1;
  for (const PrefillPart& part : parts) width = std::max(width, part.sequence->pages.size());
  std::vector<int32_t> values(parts.size() * width);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::vector<int32_t>& pages = parts[i].sequence->pages;
    std::copy(pages.begin(), pages.end(), values.begin() + static_cast<int64_t>(i * width));
  }
  page_tables_.Upload(values, static_cast<int64_t>(width));
}

void PrefillChunk::Drop(int64_t part) {
  parts_[static_cast<size_t>(part)].slot = -1;
  std::erase_if(captures_, [&](const StateCapture& capture) { return capture.part == part; });
}

void PrefillChunk::RunLayer(DecodeState& state) {
  model_.PrefillLayer(b_, next_layer_++, Rows(),
                      {.parts = {.parts = parts_, .captures = captures_},
                       .page_tables = page_tables_.view(),
                       .window = state.window()},
                      state.layers());
}

void PrefillChunk::LastLogits(Tensor logits) {
  const ActivationRows a = Rows();
  if (last_.view.rows < parts()) {
    last_ = {};  // before the larger one
    const auto most = std::bit_ceil(static_cast<uint64_t>(parts()));
    last_ = b_.NewTensor(static_cast<int64_t>(most), a.r.cols);
  }
  const Tensor last = last_.view.Rows(0, parts());
  b_.GatherRows(a.r, indices_.view.Rows(2, 1).Cols(0, parts()), last);
  model_.Logits(b_, {.r = last, .u = a.u.Rows(0, parts())}, logits);
}

void PrefillChunk::RowLogits(int64_t first, Tensor logits) const {
  const ActivationRows a = Rows();
  model_.Logits(b_, {.r = a.r.Rows(first, logits.rows), .u = a.u.Rows(first, logits.rows)}, logits);
}

}  // namespace hippodrome
