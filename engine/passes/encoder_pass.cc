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
      ids_(backend.NewIndices(1, size.rows)),
      types_(backend.NewIndices(1, size.rows)),
      positions_(backend.NewIndices(1, size.rows)),
      picked_(backend.NewIndices(1, size.answers)),
      mask_(backend),
      pooled_(backend) {
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

Tensor EncoderPass::pooled() const {
  return model_.config().pool_padding ? pooled_.view() : mask_.view();
}

void EncoderPass::Run(const EncoderBatch& batch, const LayerRunner& run_layer) {
  rows_ = batch.sequences * batch.length;
  assert(rows_ > 0 && rows_ <= activations_[0].max_rows());
  assert(CheckRange("token", batch.ids, model_.config().vocab_size).ok());
  assert(CheckRange("token type", batch.types, model_.config().type_vocab_size).ok());
  assert(CheckRange("mask", batch.mask, 2).ok());
  const std::vector<int32_t> zeros(rows_, 0), ones(rows_, 1);
  const Tensor ids = ids_.view.Cols(0, rows_);
  const Tensor types = types_.view.Cols(0, rows_);
  const Tensor positions = positions_.view.Cols(0, rows_);
  backend_.UploadIndices(batch.ids, ids);
  backend_.UploadIndices(batch.types.empty() ? zeros : batch.types, types);
  backend_.UploadIndices(Positions(batch), positions);
  mask_.Upload(batch.mask.empty() ? ones : batch.mask, batch.length);
  if (model_.config().pool_padding) pooled_.Upload(ones, batch.length);
  model_.Embed(backend_, ids, types, positions, Rows(0));
  for (int64_t layer = 0; layer < model_.config().num_hidden_layers; ++layer) {
    const EncoderRows a = Rows(layer);
    run_layer(a.x, [this, layer, a] { model_.Layer(backend_, layer, a, mask_.view()); });
  }
}

Tensor EncoderPass::TokenFeatures(std::span<const int32_t> rows) {
  const Tensor picked = picked_.view.Cols(0, std::ssize(rows));
  backend_.UploadIndices(rows, picked);
  return model_.head().TokenFeatures(backend_, x(), picked, scratch_);
}

Tensor EncoderPass::SequenceFeatures() {
  return model_.head().SequenceFeatures(backend_, x(), pooled(), scratch_);
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
  const Tensor pooled = this->pooled();
  const int64_t sequences = pooled.rows;
  const int64_t length = pooled.cols;
  const int64_t most = std::min(sequences, scratch_.rows());
  const Tensor block = Answers(most, columns);
  const Tensor x = this->x();
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
  backend_.MeanPool(x(), mask, mean);
  backend_.Download(mean, means);
}

void EncoderPass::States(std::span<float> states) { backend_.Download(x(), states); }

}  // namespace hippodrome
