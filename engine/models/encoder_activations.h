// The intermediate results of an encoder's pass over some tokens, reused by every layer.
#ifndef HIPPODROME_ENGINE_MODELS_ENCODER_ACTIVATIONS_H_
#define HIPPODROME_ENGINE_MODELS_ENCODER_ACTIVATIONS_H_

#include <algorithm>

#include "engine/config/bigs_config.h"
#include "kernels/backend.h"

namespace hippodrome {

// Views of the first `rows` rows.
struct EncoderRows {
  Tensor x;     // [rows, d] the residual stream
  Tensor y;     // [rows, d] a layer's normalised input, then what its routing gives
  Tensor wide;  // [rows, W] what a layer computes side by side: W is what its equations need
};

// Holds up to `max_rows` rows. The residual stream survives between layers; the rest is scratch.
class EncoderActivations {
 public:
  // `weights`: the dtype of the model's matrices.
  EncoderActivations(SequenceBackend& backend, const BigsConfig& config, DType weights,
                     int64_t max_rows)
      : x_(backend.NewTensor(max_rows, config.hidden_size)),
        y_(backend.NewActivations(max_rows, config.hidden_size, weights)),
        wide_(backend.NewActivations(max_rows, Width(config), weights)) {}

  int64_t max_rows() const { return x_.view.rows; }
  EncoderRows Rows(int64_t rows) const {
    return {x_.view.Rows(0, rows), y_.view.Rows(0, rows), wide_.view.Rows(0, rows)};
  }

 private:
  static int64_t Width(const BigsConfig& config) {
    const int64_t d = config.hidden_size;
    const int64_t inner = config.intermediate_size;
    const int64_t routed = config.routing == EncoderRouting::kSsm ? 2 * d : 3 * d;
    return config.block == EncoderBlock::kGated ? inner + routed : std::max(inner, routed);
  }

  OwnedTensor x_, y_, wide_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_ENCODER_ACTIVATIONS_H_
