// The intermediate results of a pass over some rows, allocated once and reused by every layer.
#ifndef HIPPODROME_ENGINE_MODELS_ACTIVATIONS_H_
#define HIPPODROME_ENGINE_MODELS_ACTIVATIONS_H_

#include "engine/config.h"
#include "kernels/backend.h"

namespace hippodrome {

// Views of the first `rows` rows.
struct ActivationRows {
  Tensor r;       // [rows, d] the residual stream
  Tensor u;       // [rows, d] normalised input of a mixer or MLP
  Tensor qkv;     // [rows, 3 d]
  Tensor o;       // [rows, d] what a mixer gives to its output projection
  Tensor hidden;  // [rows, d_inner]
};

// Holds up to `max_rows` rows. The residual stream survives between layers; the rest is scratch.
class Activations {
 public:
  // `weights`: the dtype of the model's matrices.
  Activations(Backend& backend, const H3Config& config, DType weights, int64_t max_rows)
      : r_(backend.NewTensor(max_rows, config.d_model)),
        u_(backend.NewActivations(max_rows, config.d_model, weights)),
        qkv_(backend.NewActivations(max_rows, 3 * config.d_model, weights)),
        o_(backend.NewActivations(max_rows, config.d_model, weights)),
        hidden_(backend.NewActivations(max_rows, config.d_inner, weights)) {}

  int64_t max_rows() const { return r_.view.rows; }
  ActivationRows Rows(int64_t rows) const {
    return {r_.view.Rows(0, rows), u_.view.Rows(0, rows), qkv_.view.Rows(0, rows),
            o_.view.Rows(0, rows), hidden_.view.Rows(0, rows)};
  }

 private:
  OwnedTensor r_, u_, qkv_, o_, hidden_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_ACTIVATIONS_H_
