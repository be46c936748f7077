#include "engine/passes/encoder_pass.h"

#include <algorithm>
#include <cassert>

namespace hippodrome {
namespace {

// Answers made at a time: enough to use a product well, few enough to keep the logits of a large
// vocabulary small.
constexpr int64_t kAnswerRows = 256;

}  // namespace

EncoderPass::EncoderPass(SequenceBackend& backend, const Bigs& model, int64_t max_rows)
    : backend_(backend),
      model_(model),
      activations_(model.NewActivations(backend, max_rows)),
      scratch_(backend, model.config(), model.linear_dtype(), std::min(max_rows, kAnswerRows)),
      ids_(backend.NewIndices(1, max_rows)),
      types_(backend.NewIndices(1, max_rows)),
      positions_(backend.NewIndices(1, max_rows)),
      picked_(backend.NewIndices(1, scratch_.rows())),
      mask_(backend),
      pooled_(backend) {}

void EncoderPass::Run(const EncoderBatch& batch) {
  rows_ = batch.sequences * batch.length;
  assert(rows_ > 0 && rows_ <= activations_.max_rows());
  places_.resize(rows_);
  for (int64_t i = 0; i < rows_; ++i) places_[i] = static_cast<int32_t>(i % batch.length);
  const Tensor ids = ids_.view.Cols(0, rows_);
  const Tensor types = types_.view.Cols(0, rows_);
  const Tensor positions = positions_.view.Cols(0, rows_);
  backend_.UploadIndices(batch.ids, ids);
  backend_.UploadIndices(batch.types, types);
  backend_.UploadIndices(places_, positions);
  mask_.Upload(batch.mask, batch.length);
  if (model_.config().pool_padding) {
    pooled_.Upload(std::vector<int32_t>(rows_, 1), batch.length);
  }
  const EncoderRows rows = activations_.Rows(rows_);
  model_.Embed(backend_, ids, types, positions, rows);
  for (int64_t layer = 0; layer < model_.config().num_hidden_layers; ++layer) {
    model_.Layer(backend_, layer, rows, mask_.view());
  }
}

Tensor EncoderPass::Answers(int64_t rows, int64_t columns) {
  if (answers_.view.rows < rows) answers_ = backend_.NewTensor(rows, columns);
  return answers_.view.Rows(0, rows);
}

void EncoderPass::TokenLogits(std::span<const int32_t> rows, std::span<float> logits) {
  const int64_t columns = LogitsPerAnswer(model_.config());
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t most = std::min(count, scratch_.rows());
  const Tensor block = Answers(most, columns);
  for (int64_t first = 0; first < count; first += most) {
    const int64_t n = std::min(most, count - first);
    const Tensor picked = picked_.view.Cols(0, n);
    backend_.UploadIndices(rows.subspan(first, n), picked);
    model_.head().TokenLogits(backend_, activations_.Rows(rows_).x, picked, model_.words(),
                              scratch_, block.Rows(0, n));
    backend_.Download(block.Rows(0, n), logits.subspan(first * columns, n * columns));
  }
}

void EncoderPass::SequenceLogits(std::span<float> logits) {
  const int64_t columns = LogitsPerAnswer(model_.config());
  const Tensor pooled = model_.config().pool_padding ? pooled_.view() : mask_.view();
  const int64_t sequences = pooled.rows;
  const int64_t length = pooled.cols;
  const int64_t most = std::min(sequences, scratch_.rows());
  const Tensor block = Answers(most, columns);
  const Tensor x = activations_.Rows(rows_).x;
  for (int64_t first = 0; first < sequences; first += most) {
    const int64_t n = std::min(most, sequences - first);
    model_.head().SequenceLogits(backend_, x.Rows(first * length, n * length),
                                 pooled.Rows(first, n), scratch_, block.Rows(0, n));
    backend_.Download(block.Rows(0, n), logits.subspan(first * columns, n * columns));
  }
}

void EncoderPass::Means(std::span<float> means) {
  const Tensor mask = mask_.view();
  const int64_t d = model_.config().hidden_size;
  if (means_.view.rows < mask.rows) means_ = backend_.NewTensor(mask.rows, d);
  const Tensor mean = means_.view.Rows(0, mask.rows);
  backend_.MeanPool(activations_.Rows(rows_).x, mask, mean);
  backend_.Download(mean, means);
}

}  // namespace hippodrome
