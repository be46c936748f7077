#include "tools/train/step/encoder_trainee.h"

#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/parameter_weights.h"
#include "tools/train/step/loss_terms.h"

namespace hippodrome {

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
      recompute_(size.recompute),
      pass_(tape, *model_,
            {.rows = size.sequences * size.length,
             .answers = size.sequences * size.length,
             .every_layer = !size.recompute}) {}

void EncoderTrainee::Forward(const TrainingBatch& batch) {
  pass_.Run({.sequences = batch.sequences,
             .length = batch.length,
             .ids = batch.ids,
             .types = batch.types,
             .mask = batch.mask},
            [this](Tensor x, const std::function<void()>& layer) {
              recompute_ ? tape_.Recompute(x, layer) : layer();
            });
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
  const LastProduct product = Product(pass_.TokenFeatures(rows));
  BatchLoss loss = CrossEntropy(tape_, product, labels, scale);
  if (judge) loss += Judge(tape_, product, labels);
  return loss;
}

BatchLoss EncoderTrainee::SequenceLoss(const TrainingBatch& batch, double scale, bool judge) {
  const LastProduct product = Product(pass_.SequenceFeatures());
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
  const LastProduct product = Product(pass_.TokenFeatures(rows));
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
