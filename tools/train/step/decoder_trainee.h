// Language models in training.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_DECODER_TRAINEE_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_DECODER_TRAINEE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/tape/tape.h"
#include "tools/train/step/loss_terms.h"
#include "tools/train/step/trainee.h"

namespace hippodrome {

// How much goes through a model at a time.
struct TraineeSize {
  int64_t sequences = 0;
  int64_t length = 0;      // tokens of each, at most
  bool recompute = false;  // keep only what enters a layer, and compute the rest of it twice
};

// labels: [B, T], of the token after each position.
class DecoderTrainee final : public Trainee {
 public:
  // Loads the model from `parameters`, over which `tape` was made; both must outlive it.
  static absl::StatusOr<std::unique_ptr<DecoderTrainee>> Create(Tape& tape, Parameters& parameters,
                                                                const H3Config& config,
                                                                DType weights,
                                                                const TraineeSize& size);

  LossTerms Terms(const TrainingBatch& batch) const override {
    return {.count = Labelled(batch.labels)};
  }
  BatchLoss Learn(const TrainingBatch& batch, const LossTerms& terms, uint64_t seed) override;
  BatchLoss Evaluate(const TrainingBatch& batch, bool judge) override;

 private:
  DecoderTrainee(Tape& tape, std::unique_ptr<HybridH3> model, const TraineeSize& size);

  // Runs all layers and gives what the logits are made of.
  LastProduct Forward(const TrainingBatch& batch);
  ActivationRows Rows(int64_t layer, int64_t rows) const;

  Tape& tape_;
  std::unique_ptr<HybridH3> model_;
  TraineeSize size_;
  LayerStates states_;
  std::vector<Activations> activations_;  // of each layer, or of all
  OwnedTensor ids_, positions_;           // kI32 [1, rows]
  OwnedTensor page_tables_;               // kI32 [sequences, 1]
  std::vector<SequencePart> parts_;       // of the batch at hand
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_DECODER_TRAINEE_H_
