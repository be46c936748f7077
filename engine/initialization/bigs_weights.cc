#include <cmath>
#include <string>

#include "engine/initialization/initial_weights.h"
#include "engine/initialization/parameter_list.h"
#include "engine/initialization/state_spectrum.h"
#include "engine/models/bigs/encoder_head.h"

namespace hippodrome {
namespace {

const double kLogShortestBigsStep = std::log(0.01);
constexpr double kLogLongestBigsStep = 0;

class EncoderWeights {
 public:
  EncoderWeights(const BigsConfig& config, const InitializationOptions& options)
      : config_(config),
        deviation_(options.initializer_range),
        a_imag_(ImaginaryParts(options.scaling, config.num_ssm)),
        list_(options.seed) {}

  std::vector<InitialParameter> Make();

 private:
  // A single head has no axis of its own in files.
  ParameterList::Shape PerHead(ParameterList::Shape of_head) const;
  void AddSsm(const std::string& prefix);
  void AddRouting(const std::string& prefix);
  void AddLayer(const std::string& prefix);
  void AddHead();
  // A matrix of the head, of which the published code says nothing but its shape.
  void AddOutput(const std::string& prefix, int64_t out);
  void AddLinear(const std::string& prefix, int64_t out, int64_t in) {
    list_.Linear(prefix, out, in, deviation_);
  }

  const BigsConfig& config_;
  const int64_t d_ = config_.hidden_size;
  const double deviation_;
  const std::vector<float> a_imag_;
  ParameterList list_;
};

ParameterList::Shape EncoderWeights::PerHead(ParameterList::Shape of_head) const {
  if (config_.num_ssm_heads > 1) of_head.insert(of_head.begin(), config_.num_ssm_heads);
  return of_head;
}

void EncoderWeights::AddSsm(const std::string& prefix) {
  const int64_t n = config_.num_ssm;
  list_.Constant(prefix + "kernel.A_re", PerHead({n}), -0.5f);
  list_.Repeated(prefix + "kernel.A_im", PerHead({n}), a_imag_);
  list_.Normal(prefix + "kernel.C", PerHead({n, 2}), kComplexNormal);
  list_.Uniform(prefix + "kernel.log_step", PerHead({1}), kLogShortestBigsStep,
                kLogLongestBigsStep);
  list_.Constant(prefix + "D", PerHead({1}), 1);
}

void EncoderWeights::AddRouting(const std::string& prefix) {
  if (config_.routing == EncoderRouting::kAttention) {
    for (const char* name : {"query.", "key.", "value.", "dc."}) AddLinear(prefix + name, d_, d_);
    return;
  }
  for (const char* name : {"du_forward.", "du_backward.", "duc_forward.", "duc_backward."}) {
    AddLinear(prefix + name, d_, d_);
  }
  AddSsm(prefix + "fs4.");
  AddSsm(prefix + "bs4.");
}

void EncoderWeights::AddLayer(const std::string& prefix) {
  const int64_t inner = config_.intermediate_size;
  list_.Norm(prefix + "LayerNorm.", d_);
  AddRouting(prefix);
  if (config_.block == EncoderBlock::kStack) {
    list_.Norm(prefix + "mlp_norm.", d_);
    AddLinear(prefix + "fc1.", inner, d_);
    AddLinear(prefix + "fc2.", d_, inner);
  } else {
    AddLinear(prefix + "dv.", inner, d_);
    AddLinear(prefix + "dol.", inner, d_);
    AddLinear(prefix + "do.", d_, inner);
  }
}

void EncoderWeights::AddOutput(const std::string& prefix, int64_t out) {
  list_.TruncatedNormal(prefix + "weight", {out, d_}, 1 / std::sqrt(static_cast<double>(d_)));
  list_.Constant(prefix + "bias", {out}, 0);
}

void EncoderWeights::AddHead() {
  const int64_t logits = LogitsPerAnswer(config_);
  const std::string masked_lm = "cls.predictions.";
  switch (config_.head) {
    case EncoderHead::kNone:
      return;
    case EncoderHead::kMaskedLm:
      AddOutput(masked_lm + "transform.dense.", d_);
      list_.Norm(masked_lm + "transform.LayerNorm.", d_);
      list_.Constant(masked_lm + "bias", {logits}, 0);
      if (config_.tie_word_embeddings) return;
      return list_.TruncatedNormal(masked_lm + "decoder.weight", {logits, d_},
                                   1 / std::sqrt(static_cast<double>(d_)));
    case EncoderHead::kSequenceClassification:
    case EncoderHead::kMultipleChoice:
      AddLinear("bigs.pooler.dense.", d_, d_);
      return AddOutput("classifier.", logits);
    case EncoderHead::kTokenClassification:
      return AddOutput("classifier.", logits);
    case EncoderHead::kQuestionAnswering:
      return AddOutput("qa_outputs.", logits);
  }
}

std::vector<InitialParameter> EncoderWeights::Make() {
  const std::string embeddings = "bigs.embeddings.";
  list_.Normal(embeddings + "word_embeddings.weight", {config_.vocab_size, d_}, deviation_);
  list_.Normal(embeddings + "token_type_embeddings.weight", {config_.type_vocab_size, d_},
               deviation_);
  if (config_.position_table) {
    list_.Normal(embeddings + "position_embeddings.weight", {config_.max_position_embeddings, d_},
                 deviation_);
  }
  list_.Norm(embeddings + "LayerNorm.", d_);
  for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
    AddLayer("bigs.encoder.layer." + std::to_string(layer) + ".");
  }
  AddHead();
  return list_.Take();
}

}  // namespace

std::vector<InitialParameter> InitialWeights(const BigsConfig& config,
                                             const InitializationOptions& options) {
  return EncoderWeights(config, options).Make();
}

}  // namespace hippodrome
