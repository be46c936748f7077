// Encoders in training.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_ENCODER_TRAINEE_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_ENCODER_TRAINEE_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/models/bigs/bigs.h"
#include "kernels/tape/tape.h"
#include "tools/train/step/decoder_trainee.h"
#include "tools/train/step/trainee.h"

namespace hippodrome {

// What is learned follows from the model's head and, for sequences, from its number of labels: one
// is regression.
class EncoderTrainee final : public Trainee {
 public:
  // Loads the model from `parameters`, over which `tape` was made; both must outlive it. Errors:
  // also kInvalidArgument for a head that is not trained.
  static absl::StatusOr<std::unique_ptr<EncoderTrainee>> Create(Tape& tape, Parameters& parameters,
                                                                const BigsConfig& config,
                                                                DType weights,
                                                                const TraineeSize& size);

  LossTerms Terms(const TrainingBatch& batch) const override;
  BatchLoss Learn(const TrainingBatch& batch, const LossTerms& terms, uint64_t seed) override;
  BatchLoss Evaluate(const TrainingBatch& batch, bool judge) override;

 private:
  EncoderTrainee(Tape& tape, std::unique_ptr<Bigs> model, const TraineeSize& size);

  // Runs all layers; the residual stream is in Rows(0, rows).x.
  void Forward(const TrainingBatch& batch);
  BatchLoss Loss(const TrainingBatch& batch, const LossTerms& terms, bool judge);
  BatchLoss TokenLoss(const TrainingBatch& batch, double scale, bool judge);
  BatchLoss SequenceLoss(const TrainingBatch& batch, double scale, bool judge);
  BatchLoss AnswerLoss(const TrainingBatch& batch, const LossTerms& terms);
  LastProduct Product(Tensor features) const;
  EncoderRows Rows(int64_t layer, int64_t rows) const;

  Tape& tape_;
  std::unique_ptr<Bigs> model_;
  TraineeSize size_;
  std::vector<EncoderActivations> activations_;  // of each layer, or of all
  HeadScratch scratch_;
  OwnedTensor ids_, types_, positions_;  // kI32 [1, rows]
  OwnedTensor mask_, pooled_;            // kI32 [B, T], of the last Forward()
  OwnedTensor picked_;                   // kI32 [1, m], of the last TokenLoss()
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_ENCODER_TRAINEE_H_
