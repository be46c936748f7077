#include "engine/passes/prefill_chunk.h"

#include <algorithm>
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

void PrefillChunk::Begin(std::span<const PrefillPart> parts, int64_t start, int64_t tokens) {
  assert(!parts.empty() && static_cast<int64_t>(parts.size()) <= MaxParts(tokens));
  tokens_ = tokens;
  next_layer_ = 0;
  where_ = {.start = start};
  std::vector<int32_t> ids, positions;
  slots_.clear();
  size_t pages = 0;
  for (const PrefillPart& part : parts) {
    const auto chunk = part.prompt.subspan(start, tokens);
    ids.insert(ids.end(), chunk.begin(), chunk.end());
    for (int64_t i = 0; i < tokens; ++i) positions.push_back(static_cast<int32_t>(start + i));
    slots_.push_back(static_cast<int32_t>(part.sequence->slot));
    pages = std::max(pages, part.sequence->pages.size());
  }
  assert(CheckRange("token", ids, model_.config().padded_vocab_size).ok());
  page_values_.assign(parts.size() * pages, 0);
  for (size_t i = 0; i < parts.size(); ++i) {
    std::copy(parts[i].sequence->pages.begin(), parts[i].sequence->pages.end(),
              page_values_.begin() + static_cast<int64_t>(i * pages));
  }
  const auto rows = static_cast<int64_t>(ids.size());
  const Tensor id_row = indices_.view.Rows(0, 1).Cols(0, rows);
  const Tensor position_row = indices_.view.Rows(1, 1).Cols(0, rows);
  b_.UploadIndices(ids, id_row);
  b_.UploadIndices(positions, position_row);
  UploadWhere();
  model_.Embed(b_, id_row, position_row, Rows());
}

void PrefillChunk::UploadWhere() {
  where_.slots = indices_.view.Rows(2, 1).Cols(0, parts());
  b_.UploadIndices(slots_, where_.slots);
  if (page_values_.empty()) return;
  page_tables_.Upload(page_values_, std::ssize(page_values_) / parts());
  where_.page_tables = page_tables_.view();
}

void PrefillChunk::Drop(int64_t part) {
  slots_[part] = -1;
  if (!page_values_.empty()) page_values_[part * where_.page_tables.cols] = -1;
  UploadWhere();
}

void PrefillChunk::RunLayer(DecodeState& state) {
  model_.PrefillLayer(b_, next_layer_++, Rows(), where_, state.layers());
}

void PrefillChunk::LastLogits(Tensor logits) const {
  const ActivationRows a = Rows();
  Tensor last = a.r.Rows(tokens_ - 1, a.r.rows - tokens_ + 1);  // one row of each part
  last.rows = parts();
  last.stride *= tokens_;
  model_.Logits(b_, {.r = last, .u = a.u.Rows(0, parts())}, logits);
}

void PrefillChunk::RowLogits(int64_t first, Tensor logits) const {
  const ActivationRows a = Rows();
  model_.Logits(b_, {.r = a.r.Rows(first, logits.rows), .u = a.u.Rows(first, logits.rows)}, logits);
}

}  // namespace hippodrome
