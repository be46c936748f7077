#include "engine/passes/encoder_pass.h"

#include <algorithm>
#include <cassert>

#include "engine/base/check_range.h"

namespace hippodrome {
namespace {

// Answers made at a time: enough to use a product well, few enough to keep the logits of a large
// vocabulary small.
constexpr int64_t kAnswerRows = 256;

std::vector<int32_t> Positions(const EncoderBatch& batch) {
  std::vector<int32_t> positions(static_cast<size_t>(batch.sequences * batch.length));
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i] = static_cast<int32_t>(static_cast<int64_t>(i) % batch.length);
  }
  return positions;
}

}  // namespace

EncoderPass::EncoderPass(SequenceBackend& backend, const Bigs& model, int64_t max_rows)
    : EncoderPass(backend, model, {.rows = max_rows, .answers = std::min(max_rows, kAnswerRows)}) {}

EncoderPass::EncoderPass(SequenceBackend& backend, const Bigs& model, const EncoderPassSize& size)
    : backend_(backend),
      model_(model),
      scratch_(backend, model.config(), model.linear_dtype(), size.answers),
      indices_(backend),
      picked_(backend.NewIndices(1, size.answers)) {
  const int64_t kept = size.every_layer ? model.config().num_hidden_layers : 1;
  for (int64_t i = 0; i < kept; ++i) {
    activations_.push_back(model.NewActivations(backend, size.rows));
  }
}

EncoderRows EncoderPass::Rows(int64_t layer) const {
  EncoderRows a = activations_[static_cast<size_t>(layer) % activations_.size()].Rows(rows_);
  a.x = activations_[0].Rows(rows_).x;  // one residual stream goes through all layers
  return a;
}

void EncoderPass::Run(const EncoderBatch& batch, const LayerRunner& run_layer) {
  rows_ = batch.sequences * batch.length;
  assert(rows_ > 0 && rows_ <= activations_[0].max_rows());
  assert(CheckRange("token", batch.ids, model_.config().vocab_size).ok());
  assert(CheckRange("token type", batch.types, model_.config().type_vocab_size).ok());
  assert(CheckRange("mask", batch.mask, 2).ok());
  const std::vector<int32_t> zeros(rows_, 0), ones(rows_, 1);
  const size_t ids = indices_.Add(batch.ids);
  const size_t types = indices_.Add(batch.types.empty() ? zeros : batch.types);
  const size_t positions = indices_.Add(Positions(batch));
  const size_t mask = indices_.Add(batch.mask.empty() ? ones : batch.mask, batch.sequences);
  const size_t pooled = model_.config().pool_padding ? indices_.Add(ones, batch.sequences) : mask;
  indices_.Upload();
  mask_ = indices_[mask];
  pooled_ = indices_[pooled];
  model_.Embed(backend_, indices_[ids], indices_[types], indices_[positions], Rows(0));
  for (int64_t layer = 0; layer < model_.config().num_hidden_layers; ++layer) {
    const EncoderRows a = Rows(layer);
    run_layer(a.x, [this, layer, a] { model_.Layer(backend_, layer, a, mask_); });
  }
}

Tensor EncoderPass::TokenFeatures(std::span<const int32_t> rows) {
  const Tensor picked = picked_.view.Cols(0, std::ssize(rows));
  backend_.UploadIndices(rows, picked);
  return model_.head().TokenFeatures(backend_, x(), picked, scratch_);
}

Tensor EncoderPass::SequenceFeatures() {
  return model_.head().SequenceFeatures(backend_, x(), pooled_, scratch_);
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
    model_.head().TokenLogits(backend_, x(), picked, model_.words(), scratch_, block.Rows(0, n));
    backend_.Download(block.Rows(0, n), logits.subspan(first * columns, n * columns));
  }
}

void EncoderPass::SequenceLogits(std::span<float> logits) {
  const int64_t columns = LogitsPerAnswer(model_.config());
  const int64_t sequences = pooled_.rows;
  const int64_t length = pooled_.cols;
  const int64_t most = std::min(sequences, scratch_.rows());
  const Tensor block = Answers(most, columns);
  const Tensor x = this->x();
  for (int64_t first = 0; first < sequences; first += most) {
    const int64_t n = std::min(most, sequences - first);
    model_.head().SequenceLogits(backend_, x.Rows(first * length, n * length),
                                 pooled_.Rows(first, n), scratch_, block.Rows(0, n));
    backend_.Download(block.Rows(0, n), logits.subspan(first * columns, n * columns));
  }
}

void EncoderPass::Means(std::span<float> means) {
  const int64_t d = model_.config().hidden_size;
  if (means_.view.rows < mask_.rows) means_ = backend_.NewTensor(mask_.rows, d);
  const Tensor mean = means_.view.Rows(0, mask_.rows);
  backend_.MeanPool(x(), mask_, mean);
  backend_.Download(mean, means);
}

void EncoderPass::States(std::span<float> states) { backend_.Download(x(), states); }

}  // namespace hippodrome
