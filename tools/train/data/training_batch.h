// What a step of training reads.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_TRAINING_BATCH_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_TRAINING_BATCH_H_

#include <cstdint>
#include <vector>

namespace hippodrome {

// B sequences of T tokens, row by row.
struct TrainingBatch {
  int64_t sequences = 0;        // B
  int64_t length = 0;           // T
  std::vector<int32_t> ids;     // [B, T]
  std::vector<int32_t> types;   // [B, T], or empty: all 0
  std::vector<int32_t> mask;    // [B, T], 1 where there is a token, 0 for padding; or empty: all 1
  std::vector<int32_t> labels;  // [B, T] for objectives of tokens, -1: no loss; [B] for classes;
                                // [B, 2] for answers, first and last token, no loss outside
  std::vector<float> targets;   // [B] for regression
};

// The batches of a data set, epoch after epoch. Immutable; thread-safe.
class TrainingData {
 public:
  virtual ~TrainingData() = default;

  // Of one epoch, at least 1.
  virtual int64_t batches() const = 0;
  // A pure function of the data, its seed and `index` >= 0, so that training resumes with the index
  // alone. Batch i belongs to epoch i / batches(); each epoch has an order of its own.
  virtual TrainingBatch Batch(int64_t index) const = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_TRAINING_BATCH_H_
