#include "tools/limits/model_cost.h"

#include <algorithm>

#include "engine/models/bigs/encoder_head.h"
#include "kernels/quantized_group.h"
#include "tools/limits/flops.h"

namespace hippodrome {
namespace {

// Elements of the matrices of one mixer that is no attention.
int64_t MixerMatrixElements(const H3Config& c) {
  const int64_t square = c.d_model * c.d_model;
  switch (c.mixer) {
    case DecoderMixer::kH3:
    case DecoderMixer::kLinearAttention:
      return 4 * square;  // q, k, v and the output
    case DecoderMixer::kS4d:
      return square;
    case DecoderMixer::kS4:
      return 2 * square;
    case DecoderMixer::kGss: {
      const int64_t gate = c.gss_expansion * c.d_model;
      return (c.d_model + c.gss_channels) * gate + c.d_model * c.gss_channels + gate * c.d_model;
    }
  }
  return 0;
}

// What a step needs in a layer that is no attention, beside the state.
struct MixerStep {
  double constants;  // f32 that are read, whatever the batch
  double flops;      // per sequence
};

MixerStep StepOfMixer(const H3Config& c) {
  const auto d = static_cast<double>(c.d_model);
  const auto n = static_cast<double>(c.d_state);
  switch (c.mixer) {
    case DecoderMixer::kH3:  // taps, dA and C dB of every mode, D and the shift's D
      return {d * static_cast<double>(c.head_dim) * (3 * n + 2), 10 * d * n};
    case DecoderMixer::kS4d:  // dA and C B of N / 2 modes, and D
      return {d * (2 * n + 1), 6 * d * n};
    case DecoderMixer::kS4:  // five numbers of N / 2 modes, and D
      return {d * (5 * n + 1), 12 * d * n};
    case DecoderMixer::kGss: {  // dA and C B of N modes, and D
      const auto e = static_cast<double>(c.gss_channels);
      return {e * (4 * n + 1), 12 * e * n};
    }
    case DecoderMixer::kLinearAttention:  // S and z grow, and are multiplied by the features of q
      return {0, 4 * d * (static_cast<double>(c.head_dim) + 1)};
  }
  return {};
}

// Of a weight, with its share of a scale.
double BytesOf(DType weights) {
  if (!IsQuantized(weights)) return static_cast<double>(SizeOf(weights));
  const int64_t group = QuantizedGroup(weights);
  return static_cast<double>(RowBytes(weights, group) + static_cast<int64_t>(sizeof(BF16))) /
         static_cast<double>(group);
}

// Of the matrices of the layers and of the head.
double MatrixBytes(double layers, double head, DType weights) {
  return layers * BytesOf(weights) + head * BytesOf(EmbeddingType(weights));
}

double AttentionLayers(const H3Config& c) { return static_cast<double>(c.attention_layers.size()); }

// Elements of the matrices of all layers, without the head.
double LayerMatrixElements(const H3Config& c) {
  const double attention = AttentionLayers(c);
  const auto layers = static_cast<double>(c.n_layer);
  const auto d = static_cast<double>(c.d_model);
  return (layers - attention) * static_cast<double>(MixerMatrixElements(c)) +
         attention * 4 * d * d + layers * 2 * d * static_cast<double>(c.d_inner);
}

double HeadElements(const H3Config& c) {
  return static_cast<double>(c.padded_vocab_size * c.d_model);
}

// Of the matrices of an encoder's head.
double HeadElements(const BigsConfig& c) {
  const auto d = static_cast<double>(c.hidden_size);
  const auto logits = static_cast<double>(LogitsPerAnswer(c));
  switch (c.head) {
    case EncoderHead::kNone:
      return 0;
    case EncoderHead::kTokenClassification:
    case EncoderHead::kQuestionAnswering:
      return logits * d;
    default:
      return d * d + logits * d;  // the transform of masked LM, or the pooler, and the answer
  }
}

double RateOf(DType weights, const Ceilings& ceilings) {
  switch (weights) {
    case DType::kBF16:
      return ceilings.bf16_flops;
    case DType::kI8:
    case DType::kI4:
      return ceilings.int8_flops;
    default:
      return ceilings.f32_flops;
  }
}

}  // namespace

Cost PrefillCost(const H3Config& c, int64_t batch, int64_t tokens, DType weights) {
  const auto sequences = static_cast<double>(batch);
  const auto length = static_cast<double>(tokens);
  const auto d = static_cast<double>(c.d_model);
  Cost cost;
  cost.flops = sequences * (2 * LayerMatrixElements(c) * length + 2 * HeadElements(c) +
                            2 * AttentionLayers(c) * length * length * d);
  cost.bytes = MatrixBytes(LayerMatrixElements(c), HeadElements(c), weights);
  return cost;
}

Cost DecodeCost(const H3Config& c, int64_t batch, int64_t context, DType weights,
                int64_t state_bytes) {
  const auto rows = static_cast<double>(batch);
  const auto d = static_cast<double>(c.d_model);
  const double h3_layers = static_cast<double>(c.n_layer) - AttentionLayers(c);
  const double elements = LayerMatrixElements(c) + HeadElements(c);
  const MixerStep mixer = StepOfMixer(c);
  const double constants = h3_layers * mixer.constants * static_cast<double>(sizeof(float));
  const auto state = static_cast<double>(state_bytes);
  const double key_values = AttentionLayers(c) * 2 * d * static_cast<double>(context) *
                            static_cast<double>(SizeOf(KeyValueType(weights)));
  Cost cost;
  cost.flops = 2 * elements * rows + rows * h3_layers * mixer.flops +
               rows * AttentionLayers(c) * 4 * static_cast<double>(context) * d;
  cost.bytes = MatrixBytes(LayerMatrixElements(c), HeadElements(c), weights) + constants +
               rows * (state + key_values);
  return cost;
}

Cost EncodeCost(const BigsConfig& c, int64_t batch, int64_t tokens, DType weights) {
  const EncoderFlops input = CountFlops(c, tokens);
  const double layers = input.matrices / 2 / static_cast<double>(tokens);
  const double attention = c.routing == EncoderRouting::kAttention ? input.mixing : 0;
  Cost cost;
  cost.flops = static_cast<double>(batch) * (input.matrices + attention + 2 * HeadElements(c));
  cost.bytes = MatrixBytes(layers, HeadElements(c), weights);
  return cost;
}

double LeastSeconds(const Cost& cost, DType weights, const Ceilings& ceilings) {
  return std::max(cost.flops / RateOf(weights, ceilings), cost.bytes / ceilings.read_bytes);
}

}  // namespace hippodrome
