// The configuration of a model, as in the config.json of a model directory.
#ifndef HIPPODROME_ENGINE_CONFIG_CONFIG_H_
#define HIPPODROME_ENGINE_CONFIG_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace hippodrome {

// What carries information between tokens in the layers of a decoder without attention: H3, or one
// of the layers that H3 was compared with.
enum class DecoderMixer : uint8_t {
  kH3,               // "h3"
  kS4d,              // "s4d", as in the papers' synthetic tasks
  kS4,               // "s4", with a gated output projection
  kGss,              // "gss" (Mehta et al., 2022)
  kLinearAttention,  // "linear_attention" (Katharopoulos et al., 2020)
};

// "h3", "s4d", "s4", "gss" or "linear_attention".
const char* Name(DecoderMixer mixer);

// A Hybrid H3 decoder. JSON keys carry the constructor names of the published code
// (ssm_cfg.d_state, attn_cfg.num_heads, ...); unknown keys are ignored.
struct H3Config {
  int64_t d_model = 0;
  int64_t n_layer = 0;
  int64_t d_inner = 0;            // default 4 d_model
  int64_t vocab_size = 0;         // ids that exist
  int64_t padded_vocab_size = 0;  // rows of the embedding; default: vocab_size rounded up to a
                                  // multiple of pad_vocab_size_multiple
  DecoderMixer mixer = DecoderMixer::kH3;
  int64_t d_state = 64;  // N; even; GSS: N complex modes, by default 512
  // Of H3, by default 1, and of linear attention, which must say it and has neither d_state nor
  // n_ssm.
  int64_t head_dim = 1;
  int64_t n_ssm = 0;  // rows of A and B; default: the number of heads, 1 in S4D and GSS
  // S4 (ssm_cfg.l_kernel): stored C are C (I - dA^c_length), as published; 0: C itself.
  int64_t c_length = 0;
  // GSS: channels of its SSM (ssm_cfg.dss_kernel_H, default d / 4, at least 1) and of its gate in
  // units of d (ssm_cfg.dim_expansion_factor).
  int64_t gss_channels = 0;
  int64_t gss_expansion = 4;
  Discretization discretization = Discretization::kBilinear;
  H3OutputOrder output_order = H3OutputOrder::kHeadD2;
  std::vector<int64_t> attention_layers;  // ascending, 0-based
  int64_t attention_heads = 0;            // 0 if and only if attention_layers is empty
  int64_t rotary_dim = 0;                 // rotated dimensions per head
  int64_t max_position_embeddings = 0;    // rows of the position table; 0: none
  double layer_norm_epsilon = 1e-5;
  int64_t eos_token_id = -1;  // -1: none

  int64_t heads() const { return d_model / head_dim; }
  bool IsAttention(int64_t layer) const;
};

// Reads and validates `json_text` field by field. Errors: kInvalidArgument naming the field, its
// value and what was expected.
absl::StatusOr<H3Config> ParseH3Config(const std::string& json_text);

// Reads DIR/config.json. Errors: as above, or kNotFound.
absl::StatusOr<H3Config> ReadH3Config(const std::string& directory);

// The text of a config.json from which ParseH3Config gives `config` again.
std::string ToJson(const H3Config& config);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CONFIG_CONFIG_H_
