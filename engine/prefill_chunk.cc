#include "engine/prefill_chunk.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hippodrome {

PrefillChunk::PrefillChunk(Backend& backend, const HybridH3& model)
    : b_(backend),
      model_(model),
      activations_(model.NewActivations(backend, kGrid)),
      ids_(backend.NewIndices(1, kGrid)),
      positions_(backend.NewIndices(1, kGrid)),
      next_layer_(model.layers()) {}

void PrefillChunk::Begin(std::span<const int32_t> prompt, int64_t start,
                         const SequenceState& sequence, int64_t max_rows) {
  const int64_t to_grid = kGrid - start % kGrid;
  rows_ = std::min({max_rows, to_grid, static_cast<int64_t>(prompt.size()) - start});
  next_layer_ = 0;
  where_ = {.slot = sequence.slot, .start = start};
  if (!sequence.pages.empty()) {
    const auto pages = static_cast<int64_t>(sequence.pages.size());
    if (page_table_.view.cols != pages) page_table_ = b_.NewIndices(1, pages);
    b_.UploadIndices(sequence.pages, page_table_);
    where_.page_table = page_table_;
  }
  std::vector<int32_t> positions(rows_);
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(start));
  const Tensor ids = ids_.view.Cols(0, rows_);
  const Tensor at = positions_.view.Cols(0, rows_);
  b_.UploadIndices(prompt.subspan(start, rows_), ids);
  b_.UploadIndices(positions, at);
  model_.Embed(b_, ids, at, activations_.Rows(rows_));
}

void PrefillChunk::RunLayer(DecodeState& state) {
  model_.PrefillLayer(b_, next_layer_++, activations_.Rows(rows_), where_, state);
}

void PrefillChunk::LastLogits(Tensor logits) const {
  const ActivationRows a = activations_.Rows(rows_);
  model_.Logits(b_, {.r = a.r.Rows(rows_ - 1, 1), .u = a.u.Rows(rows_ - 1, 1)}, logits);
}

void PrefillChunk::AllLogits(Tensor logits) const {
  model_.Logits(b_, activations_.Rows(rows_), logits);
}

}  // namespace hippodrome
