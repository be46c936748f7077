#include "engine/models/bigs/encoder_head.h"

#include "engine/base/status.h"

namespace hippodrome {

bool AnswersForTokens(EncoderHead head) {
  return head == EncoderHead::kMaskedLm || head == EncoderHead::kTokenClassification ||
         head == EncoderHead::kQuestionAnswering;
}

int64_t LogitsPerAnswer(const BigsConfig& config) {
  switch (config.head) {
    case EncoderHead::kNone:
      return 0;
    case EncoderHead::kMaskedLm:
      return config.vocab_size;
    case EncoderHead::kSequenceClassification:
    case EncoderHead::kTokenClassification:
      return config.num_labels();
    case EncoderHead::kMultipleChoice:
      return 1;
    case EncoderHead::kQuestionAnswering:
      return 2;
  }
  return 0;
}

absl::Status EncoderHeadLayers::LoadMaskedLm(const WeightsReader& reader,
                                             const BigsConfig& config) {
  const int64_t d = config.hidden_size;
  const int64_t vocab = config.vocab_size;
  const std::string prefix = "cls.predictions.";
  const std::string dense = prefix + "transform.dense.";
  activation_ = config.hidden_act;
  HIPPODROME_ASSIGN_OR_RETURN(w_t_, reader.EmbeddingOrHead(dense + "weight", d, d));
  HIPPODROME_ASSIGN_OR_RETURN(b_t_, reader.Row({dense + "bias"}, d));
  HIPPODROME_ASSIGN_OR_RETURN(
      norm_, EncoderNorm::Load(reader, prefix + "transform.LayerNorm.", d, config.layer_norm_eps));
  HIPPODROME_ASSIGN_OR_RETURN(b_c_, reader.Row({prefix + "bias"}, vocab));
  if (config.tie_word_embeddings) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(w_c_, reader.EmbeddingOrHead(prefix + "decoder.weight", vocab, d));
  return absl::OkStatus();
}

absl::Status EncoderHeadLayers::LoadPooler(const WeightsReader& reader, const BigsConfig& config) {
  const int64_t d = config.hidden_size;
  activation_ = Epilogue::Activation::kTanh;
  HIPPODROME_ASSIGN_OR_RETURN(w_t_, reader.EmbeddingOrHead("bigs.pooler.dense.weight", d, d));
  HIPPODROME_ASSIGN_OR_RETURN(b_t_, reader.ActivationRow({"bigs.pooler.dense.bias"}, d));
  return absl::OkStatus();
}

absl::Status EncoderHeadLayers::LoadClassifier(const WeightsReader& reader,
                                               const BigsConfig& config,
                                               const std::string& prefix) {
  const int64_t logits = LogitsPerAnswer(config);
  HIPPODROME_ASSIGN_OR_RETURN(
      w_c_, reader.EmbeddingOrHead(prefix + "weight", logits, config.hidden_size));
  HIPPODROME_ASSIGN_OR_RETURN(b_c_, reader.Row({prefix + "bias"}, logits));
  return absl::OkStatus();
}

absl::StatusOr<EncoderHeadLayers> EncoderHeadLayers::Load(const WeightsReader& reader,
                                                          const BigsConfig& config) {
  EncoderHeadLayers layers;
  layers.head_ = config.head;
  switch (config.head) {
    case EncoderHead::kNone:
      break;
    case EncoderHead::kMaskedLm:
      HIPPODROME_RETURN_IF_ERROR(layers.LoadMaskedLm(reader, config));
      break;
    case EncoderHead::kSequenceClassification:
    case EncoderHead::kMultipleChoice:
      HIPPODROME_RETURN_IF_ERROR(layers.LoadPooler(reader, config));
      HIPPODROME_RETURN_IF_ERROR(layers.LoadClassifier(reader, config, "classifier."));
      break;
    case EncoderHead::kTokenClassification:
      HIPPODROME_RETURN_IF_ERROR(layers.LoadClassifier(reader, config, "classifier."));
      break;
    case EncoderHead::kQuestionAnswering:
      HIPPODROME_RETURN_IF_ERROR(layers.LoadClassifier(reader, config, "qa_outputs."));
      break;
  }
  return layers;
}

Tensor EncoderHeadLayers::TokenFeatures(SequenceBackend& b, Tensor x, Tensor rows,
                                        const HeadScratch& scratch) const {
  const Tensor u = scratch.picked(rows.cols);  // [m, d]
  b.GatherRows(x, rows, u);                    // u = x[rows]
  if (head_ != EncoderHead::kMaskedLm) {
    b.Dropout(DropoutSite::kHead, u);
    return u;
  }
  const Tensor h = scratch.hidden(rows.cols);                        // [m, d]
  const Tensor n = scratch.normed(rows.cols);                        // [m, d]
  b.Linear(u, *w_t_, {.bias = b_t_, .activation = activation_}, h);  // h = act(W_t u + b)
  norm_.Apply(b, h, n);                                              // n = LN(h)
  return n;
}

void EncoderHeadLayers::TokenLogits(SequenceBackend& b, Tensor x, Tensor rows,
                                    const LinearWeights& words, const HeadScratch& scratch,
                                    Tensor logits) const {
  const Tensor n = TokenFeatures(b, x, rows, scratch);
  b.Linear(n, decoder(words), {.bias = b_c_}, logits);  // logits = n E^T + b
}

Tensor EncoderHeadLayers::SequenceFeatures(SequenceBackend& b, Tensor x, Tensor mask,
                                           const HeadScratch& scratch) const {
  const Tensor mean = scratch.picked(mask.rows);                        // [B, d]
  const Tensor p = scratch.normed(mask.rows);                           // [B, d]
  b.MeanPool(x, mask, mean);                                            // mean of x over the mask
  b.Linear(mean, *w_t_, {.bias = b_t_, .activation = activation_}, p);  // p = tanh(W_p mean + b)
  b.Dropout(DropoutSite::kHead, p);
  return p;
}

void EncoderHeadLayers::SequenceLogits(SequenceBackend& b, Tensor x, Tensor mask,
                                       const HeadScratch& scratch, Tensor logits) const {
  const Tensor p = SequenceFeatures(b, x, mask, scratch);
  b.Linear(p, *w_c_, {.bias = b_c_}, logits);  // logits = W p + b
}

}  // namespace hippodrome
