// The intermediate results of a pass over some rows, allocated once and reused by every layer.
#ifndef HIPPODROME_ENGINE_MODELS_ACTIVATIONS_H_
#define HIPPODROME_ENGINE_MODELS_ACTIVATIONS_H_

#include "engine/config/config.h"
#include "kernels/backend.h"

namespace hippodrome {

// Views of some rows.
struct ActivationRows {
  // Rows [first, first + rows) of these.
  ActivationRows Rows(int64_t first, int64_t rows) const {
    const auto part = [&](Tensor t) { return t.data == nullptr ? t : t.Rows(first, rows); };
    return {.r = part(r),
            .u = part(u),
            .qkv = part(qkv),
            .o = part(o),
            .hidden = part(hidden),
            .wide = part(wide),
            .stream = part(stream)};
  }

  Tensor r;       // [rows, d] the residual stream
  Tensor u;       // [rows, d] normalised input of a mixer or MLP
  Tensor qkv;     // [rows, 3 d]
  Tensor o;       // [rows, d] what a mixer gives to its output projection
  Tensor hidden;  // [rows, d_inner]
  // Of the mixers that H3 was compared with:
  Tensor wide;    // GSS: [rows, G + 2 E], gates and both ends of the SSM
  Tensor stream;  // of the residual stream's type. S4: [rows, 2 d]; GSS: [rows, E]
};

// Holds up to `max_rows` rows. The residual stream survives between layers; the rest is scratch.
class Activations {
 public:
  // `weights`: the dtype of the model's matrices.
  Activations(SequenceBackend& backend, const H3Config& config, DType weights, int64_t max_rows)
      : r_(backend.NewTensor(max_rows, config.d_model)),
        u_(ReadsNormalised(config.mixer)
               ? backend.NewActivations(max_rows, config.d_model, weights)
               : backend.NewProductInputs(max_rows, config.d_model, weights)),
        qkv_(backend.NewActivations(max_rows, 3 * config.d_model, weights)),
        o_(backend.NewActivations(max_rows, config.d_model, weights)),
        hidden_(backend.NewProductInputs(max_rows, config.d_inner, weights)) {
    if (config.mixer == DecoderMixer::kS4) {
      stream_ = backend.NewTensor(max_rows, 2 * config.d_model);
    } else if (config.mixer == DecoderMixer::kGss) {
      const int64_t gates = config.gss_expansion * config.d_model;
      wide_ = backend.NewActivations(max_rows, gates + 2 * config.gss_channels, weights);
      stream_ = backend.NewTensor(max_rows, config.gss_channels);
    }
  }

  int64_t max_rows() const { return r_.view.rows; }
  // The first `rows` rows.
  ActivationRows Rows(int64_t rows) const {
    const ActivationRows all = {.r = r_,
                                .u = u_,
                                .qkv = qkv_,
                                .o = o_,
                                .hidden = hidden_,
                                .wide = wide_,
                                .stream = stream_};
    return all.Rows(0, rows);
  }

 private:
  // Whether the mixer reads u other than by products.
  static bool ReadsNormalised(DecoderMixer mixer) {
    return mixer == DecoderMixer::kS4 || mixer == DecoderMixer::kS4d;
  }

  OwnedTensor r_, u_, qkv_, o_, hidden_;
  OwnedTensor wide_, stream_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_MODELS_ACTIVATIONS_H_
