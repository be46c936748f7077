// A LayerNorm of an encoder.
#ifndef HIPPODROME_ENGINE_MODELS_ENCODER_NORM_H_
#define HIPPODROME_ENGINE_MODELS_ENCODER_NORM_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_reader.h"
#include "kernels/backend.h"

namespace hippodrome {

class EncoderNorm {
 public:
  // Reads `prefix`weight and `prefix`bias, [size].
  static absl::StatusOr<EncoderNorm> Load(const WeightsReader& reader, const std::string& prefix,
                                          int64_t size, double epsilon);

  // y = LN(x)
  void Apply(SequenceBackend& b, Tensor x, Tensor y) const {
    b.LayerNorm(x, gamma_, beta_, epsilon_, y);
  }

 private:
  OwnedTensor gamma_, beta_;  // [1, d]
  double epsilon_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_ENCODER_NORM_H_
