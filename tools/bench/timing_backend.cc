#include "tools/bench/timing_backend.h"

namespace hippodrome {

void TimingBackend::Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                              const AddedRows& positions, Tensor y) {
  Time("embedding", [&] { ForwardingBackend::Embedding(table, ids, types, positions, y); });
}

void TimingBackend::LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  Time("layer_norm", [&] { ForwardingBackend::LayerNorm(x, gamma, beta, epsilon, y); });
}

void TimingBackend::Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  Time("linear " + std::to_string(w.in()) + "x" + std::to_string(w.out()),
       [&] { ForwardingBackend::Linear(x, w, epilogue, y); });
}

void TimingBackend::Activate(Tensor x, const Epilogue& epilogue, Tensor y) {
  Time("activate", [&] { ForwardingBackend::Activate(x, epilogue, y); });
}

void TimingBackend::H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                               const SequenceParts& parts, Tensor o) {
  Time("h3_sequence", [&] { ForwardingBackend::H3Sequence(weights, qkv, state, parts, o); });
}

void TimingBackend::H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                           Tensor slots, Tensor positions, Tensor o) {
  Time("h3_step", [&] { ForwardingBackend::H3Step(weights, qkv, state, slots, positions, o); });
}

void TimingBackend::SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                                const SequenceParts& parts, Tensor y) {
  Time("ssm_sequence", [&] { ForwardingBackend::SsmSequence(weights, u, state, parts, y); });
}

void TimingBackend::SsmStep(const SsmWeights& weights, Tensor u, RecurrentState& state,
                            Tensor slots, Tensor y) {
  Time("ssm_step", [&] { ForwardingBackend::SsmStep(weights, u, state, slots, y); });
}

void TimingBackend::LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv,
                                            RecurrentState& state, const SequenceParts& parts,
                                            Tensor o) {
  Time("linear_attention_sequence",
       [&] { ForwardingBackend::LinearAttentionSequence(shape, qkv, state, parts, o); });
}

void TimingBackend::LinearAttentionStep(const LinearAttentionShape& shape, Tensor qkv,
                                        RecurrentState& state, Tensor slots, Tensor o) {
  Time("linear_attention_step",
       [&] { ForwardingBackend::LinearAttentionStep(shape, qkv, state, slots, o); });
}

void TimingBackend::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                      KeyValuePages& pages, Tensor page_tables,
                                      const SequenceParts& parts, Tensor o) {
  Time("attention_sequence", [&] {
    ForwardingBackend::AttentionSequence(shape, qkv, inv_freq, pages, page_tables, parts, o);
  });
}

void TimingBackend::AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                  KeyValuePages& pages, Tensor page_tables, Tensor positions,
                                  Tensor o) {
  Time("attention_step", [&] {
    ForwardingBackend::AttentionStep(shape, qkv, inv_freq, pages, page_tables, positions, o);
  });
}

void TimingBackend::LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences,
                             Direction direction, Tensor y) {
  Time("long_conv", [&] { ForwardingBackend::LongConv(weights, u, sequences, direction, y); });
}

void TimingBackend::BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                           Tensor o) {
  Time("bidirectional_attention",
       [&] { ForwardingBackend::BidirectionalAttention(shape, qkv, mask, o); });
}

void TimingBackend::MeanPool(Tensor x, Tensor mask, Tensor y) {
  Time("mean_pool", [&] { ForwardingBackend::MeanPool(x, mask, y); });
}

void TimingBackend::GatherRows(Tensor x, Tensor rows, Tensor y) {
  Time("gather_rows", [&] { ForwardingBackend::GatherRows(x, rows, y); });
}

void TimingBackend::Sample(Tensor logits, int64_t vocab, Tensor rows,
                           const LogitAdjustments& adjustments, Tensor tokens) {
  Time("sample", [&] { ForwardingBackend::Sample(logits, vocab, rows, adjustments, tokens); });
}

}  // namespace hippodrome
