#include "tools/train/step/encoder_trainee.h"

#include <numeric>
#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/parameter_weights.h"
#include "tools/train/step/loss_terms.h"

namespace hippodrome {
namespace {

// `values`, or `size` times `value` where there are none.
std::vector<int32_t> Or(const std::vector<int32_t>& values, int64_t size, int32_t value) {
  return values.empty() ? std::vector<int32_t>(static_cast<size_t>(size), value) : values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderTrainee>> EncoderTrainee::Create(Tape& tape,
                                                                       Parameters& parameters,
                                                                       const BigsConfig& config,
                                                                       DType weights,
                                                                       const TraineeSize& size) {
  if (config.head == EncoderHead::kNone || config.head == EncoderHead::kMultipleChoice) {
    return InvalidArgument(std::string("architectures: ") + Name(config.head) +
                           " cannot be trained here, expected a masked-LM, sequence or token "
                           "classification, or question answering head");
  }
  ParameterWeights source(parameters);
  HIPPODROME_ASSIGN_OR_RETURN(auto model, Bigs::Load(tape, config, source, weights));
  return std::unique_ptr<EncoderTrainee>(new EncoderTrainee(tape, std::move(model), size));
}

EncoderTrainee::EncoderTrainee(Tape& tape, std::unique_ptr<Bigs> model, const TraineeSize& size)
    : tape_(tape),
      model_(std::move(model)),
      size_(size),
      scratch_(tape, model_->config(), model_->linear_dtype(), size.sequences * size.length),
      ids_(tape.NewIndices(1, size.sequences * size.length)),
      types_(tape.NewIndices(1, size.sequences * size.length)),
      positions_(tape.NewIndices(1, size.sequences * size.length)) {
  const int64_t kept = size.recompute ? 1 : model_->config().num_hidden_layers;
  for (int64_t i = 0; i < kept; ++i) {
    activations_.push_back(model_->NewActivations(tape, size.sequences * size.length));
  }
}

EncoderRows EncoderTrainee::Rows(int64_t layer, int64_t rows) const {
  EncoderRows a = activations_[size_.recompute ? 0 : layer].Rows(rows);
  a.x = activations_[0].Rows(rows).x;  // one residual stream goes through all layers
  return a;
}

void EncoderTrainee::Forward(const TrainingBatch& batch) {
  const int64_t rows = batch.sequences * batch.length;
  std::vector<int32_t> places(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    places[static_cast<size_t>(i)] = static_cast<int32_t>(i % batch.length);
  }
  const Tensor ids = ids_.view.Cols(0, rows);
  const Tensor types = types_.view.Cols(0, rows);
  const Tensor positions = positions_.view.Cols(0, rows);
  tape_.UploadIndices(batch.ids, ids);
  tape_.UploadIndices(Or(batch.types, rows, 0), types);
  tape_.UploadIndices(places, positions);
  mask_ = tape_.NewIndices(batch.sequences, batch.length);
  tape_.UploadIndices(Or(batch.mask, rows, 1), mask_);
  pooled_ = mask_;
  if (model_->config().pool_padding) {
    pooled_ = tape_.NewIndices(batch.sequences, batch.length);
    tape_.UploadIndices(std::vector<int32_t>(static_cast<size_t>(rows), 1), pooled_);
  }
  model_->Embed(tape_, ids, types, positions, Rows(0, rows));
  for (int64_t layer = 0; layer < model_->config().num_hidden_layers; ++layer) {
    const EncoderRows a = Rows(layer, rows);
    const auto run = [this, layer, a] { model_->Layer(tape_, layer, a, mask_); };
    size_.recompute ? tape_.Recompute(a.x, run) : run();
  }
}

LastProduct EncoderTrainee::Product(Tensor features) const {
  const EncoderHeadLayers& head = model_->head();
  return {features, head.decoder(model_->words()), head.bias()};
}

BatchLoss EncoderTrainee::TokenLoss(const TrainingBatch& batch, double scale, bool judge) {
  std::vector<int32_t> rows, labels;
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    if (batch.labels[i] < 0) continue;
    rows.push_back(static_cast<int32_t>(i));
    labels.push_back(batch.labels[i]);
  }
  if (rows.empty()) return {};
  picked_ = tape_.NewIndices(1, static_cast<int64_t>(rows.size()));
  tape_.UploadIndices(rows, picked_);
  const Tensor x = Rows(0, batch.sequences * batch.length).x;
  const LastProduct product = Product(model_->head().TokenFeatures(tape_, x, picked_, scratch_));
  BatchLoss loss = CrossEntropy(tape_, product, labels, scale);
  if (judge) loss += Judge(tape_, product, labels);
  return loss;
}

BatchLoss EncoderTrainee::SequenceLoss(const TrainingBatch& batch, double scale, bool judge) {
  const Tensor x = Rows(0, batch.sequences * batch.length).x;
  const LastProduct product = Product(model_->head().SequenceFeatures(tape_, x, pooled_, scratch_));
  if (model_->config().num_labels() == 1) {
    return SquaredError(tape_, product, batch.targets, scale);
  }
  BatchLoss loss = CrossEntropy(tape_, product, batch.labels, scale);
  if (judge) loss += Judge(tape_, product, batch.labels);
  return loss;
}

BatchLoss EncoderTrainee::AnswerLoss(const TrainingBatch& batch, const LossTerms& terms) {
  std::vector<int32_t> rows(static_cast<size_t>(batch.sequences * batch.length));
  std::iota(rows.begin(), rows.end(), 0);
  picked_ = tape_.NewIndices(1, static_cast<int64_t>(rows.size()));
  tape_.UploadIndices(rows, picked_);
  const Tensor x = Rows(0, batch.sequences * batch.length).x;
  const LastProduct product = Product(model_->head().TokenFeatures(tape_, x, picked_, scratch_));
  return SpanCrossEntropy(tape_, product, batch.sequences, batch.labels, terms);
}

BatchLoss EncoderTrainee::Loss(const TrainingBatch& batch, const LossTerms& terms, bool judge) {
  switch (model_->config().head) {
    case EncoderHead::kMaskedLm:
    case EncoderHead::kTokenClassification:
      return TokenLoss(batch, terms.scale(), judge);
    case EncoderHead::kQuestionAnswering:
      return AnswerLoss(batch, terms);
    default:
      return SequenceLoss(batch, terms.scale(), judge);
  }
}

LossTerms EncoderTrainee::Terms(const TrainingBatch& batch) const {
  switch (model_->config().head) {
    case EncoderHead::kMaskedLm:
    case EncoderHead::kTokenClassification:
      return {.count = Labelled(batch.labels)};
    case EncoderHead::kQuestionAnswering:
      return AnswerTerms(batch.sequences, batch.length, batch.labels);
    default:
      return {.count = batch.sequences};
  }
}

BatchLoss EncoderTrainee::Learn(const TrainingBatch& batch, const LossTerms& terms, uint64_t seed) {
  tape_.Begin(seed);
  Forward(batch);
  const BatchLoss loss = Loss(batch, terms, false);
  tape_.Backward();
  return loss;
}

BatchLoss EncoderTrainee::Evaluate(const TrainingBatch& batch, bool judge) {
  Forward(batch);
  return Loss(batch, Terms(batch), judge);
}

}  // namespace hippodrome
