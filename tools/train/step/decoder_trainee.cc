#include "tools/train/step/decoder_trainee.h"

#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/parameter_weights.h"

namespace hippodrome {

absl::StatusOr<std::unique_ptr<DecoderTrainee>> DecoderTrainee::Create(Tape& tape,
                                                                       Parameters& parameters,
                                                                       const H3Config& config,
                                                                       DType weights,
                                                                       const TraineeSize& size) {
  ParameterWeights source(parameters);
  HIPPODROME_ASSIGN_OR_RETURN(auto model, HybridH3::Load(tape, config, source, weights));
  return std::unique_ptr<DecoderTrainee>(new DecoderTrainee(tape, std::move(model), size));
}

DecoderTrainee::DecoderTrainee(Tape& tape, std::unique_ptr<HybridH3> model, const TraineeSize& size)
    : tape_(tape),
      model_(std::move(model)),
      size_(size),
      states_(model_->NewLayerStates(tape, size.sequences, size.sequences, size.length)),
      ids_(tape.NewIndices(1, size.sequences * size.length)),
      positions_(tape.NewIndices(1, size.sequences * size.length)),
      page_tables_(tape.NewIndices(size.sequences, 1)) {
  const int64_t kept = size.recompute ? 1 : model_->layers();
  for (int64_t i = 0; i < kept; ++i) {
    activations_.push_back(model_->NewActivations(tape, size.sequences * size.length));
  }
}

ActivationRows DecoderTrainee::Rows(int64_t layer, int64_t rows) const {
  ActivationRows a = activations_[size_.recompute ? 0 : layer].Rows(rows);
  a.r = activations_[0].Rows(rows).r;  // one residual stream goes through all layers
  return a;
}

LastProduct DecoderTrainee::Forward(const TrainingBatch& batch) {
  const int64_t rows = batch.sequences * batch.length;
  std::vector<int32_t> positions(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    positions[static_cast<size_t>(i)] = static_cast<int32_t>(i % batch.length);
  }
  const Tensor ids = ids_.view.Cols(0, rows);
  const Tensor places = positions_.view.Cols(0, rows);
  tape_.UploadIndices(batch.ids, ids);
  tape_.UploadIndices(positions, places);
  parts_ = WholeSequences(batch.sequences, batch.length);
  const PrefillRows where = {.parts = {parts_, {}},
                             .page_tables = page_tables_.view.Rows(0, batch.sequences)};
  model_->Embed(tape_, ids, places, Rows(0, rows));
  for (int64_t layer = 0; layer < model_->layers(); ++layer) {
    const ActivationRows a = Rows(layer, rows);
    const auto run = [this, layer, a, where] {
      model_->PrefillLayer(tape_, layer, a, where, states_);
    };
    size_.recompute ? tape_.Recompute(a.r, run) : run();
  }
  const ActivationRows last = Rows(model_->layers() - 1, rows);
  model_->Features(tape_, last);
  return {last.u, model_->embedding(), {}};
}

BatchLoss DecoderTrainee::Learn(const TrainingBatch& batch, const LossTerms& terms, uint64_t seed) {
  tape_.Begin(seed);
  const BatchLoss loss = CrossEntropy(tape_, Forward(batch), batch.labels, terms.scale());
  tape_.Backward();
  return loss;
}

BatchLoss DecoderTrainee::Evaluate(const TrainingBatch& batch, bool judge) {
  const LastProduct product = Forward(batch);
  BatchLoss loss = CrossEntropy(tape_, product, batch.labels, 1);
  if (judge) loss += Judge(tape_, product, batch.labels);
  return loss;
}

}  // namespace hippodrome
