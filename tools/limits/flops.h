// Floating-point operations of an encoder's forward pass, counted as in Table 6 of "Pretraining
// Without Attention" (Wang et al., 2022), all of whose numbers follow.
#ifndef HIPPODROME_TOOLS_LIMITS_FLOPS_H_
#define HIPPODROME_TOOLS_LIMITS_FLOPS_H_

#include <cstdint>
#include <string>

#include "engine/config/bigs_config.h"

namespace hippodrome {

// Of one input. Embeddings, LayerNorm, activations and the head are not counted.
struct EncoderFlops {
  double matrices = 0;  // of the layers: 2 per weight and token
  // What goes from token to token, per layer: attention 4 L^2 d; an SSM, per channel and direction,
  // two real FFTs of n = 2 L points, 2.5 n log2 n each, and the product of spectra, 6 (L + 1).
  double mixing = 0;

  double total() const { return matrices + mixing; }
};

// For an input of `length` tokens, >= 1.
EncoderFlops CountFlops(const BigsConfig& config, int64_t length);

// The encoder with which the paper compares: BERT-large.
BigsConfig BertLarge();

// "8.1E10", as the paper prints numbers.
std::string PaperNotation(double value);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LIMITS_FLOPS_H_
