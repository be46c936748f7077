// Encoders in training.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_ENCODER_TRAINEE_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_ENCODER_TRAINEE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/models/bigs/bigs.h"
#include "engine/passes/encoder_pass.h"
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

  void Forward(const TrainingBatch& batch);
  BatchLoss Loss(const TrainingBatch& batch, const LossTerms& terms, bool judge);
  BatchLoss TokenLoss(const TrainingBatch& batch, double scale, bool judge);
  BatchLoss SequenceLoss(const TrainingBatch& batch, double scale, bool judge);
  BatchLoss AnswerLoss(const TrainingBatch& batch, const LossTerms& terms);
  LastProduct Product(Tensor features) const;

  Tape& tape_;
  std::unique_ptr<Bigs> model_;
  const bool recompute_;
  EncoderPass pass_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_ENCODER_TRAINEE_H_
