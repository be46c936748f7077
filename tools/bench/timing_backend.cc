#include "tools/bench/timing_backend.h"

namespace hippodrome {

void TimingBackend::Embedding(const LinearWeights& table, Tensor position_table, Tensor ids,
                              Tensor positions, Tensor y) {
  Time("embedding", [&] { inner_.Embedding(table, position_table, ids, positions, y); });
}

void TimingBackend::LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  Time("layer_norm", [&] { inner_.LayerNorm(x, gamma, beta, epsilon, y); });
}

void TimingBackend::Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  Time("linear " + std::to_string(w.in()) + "x" + std::to_string(w.out()),
       [&] { inner_.Linear(x, w, epilogue, y); });
}

void TimingBackend::H3Sequence(const H3Weights& weights, Tensor qkv, H3State& state, int64_t slot,
                               Tensor o) {
  Time("h3_sequence", [&] { inner_.H3Sequence(weights, qkv, state, slot, o); });
}

void TimingBackend::H3Step(const H3Weights& weights, Tensor qkv, H3State& state, Tensor slots,
                           Tensor o) {
  Time("h3_step", [&] { inner_.H3Step(weights, qkv, state, slots, o); });
}

void TimingBackend::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                      KeyValuePages& pages, Tensor page_table, int64_t start,
                                      Tensor o) {
  Time("attention_sequence",
       [&] { inner_.AttentionSequence(shape, qkv, inv_freq, pages, page_table, start, o); });
}

void TimingBackend::AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                  KeyValuePages& pages, Tensor page_tables, Tensor positions,
                                  Tensor o) {
  Time("attention_step",
       [&] { inner_.AttentionStep(shape, qkv, inv_freq, pages, page_tables, positions, o); });
}

void TimingBackend::Sample(Tensor logits, int64_t vocab,
                           std::span<const SamplingParameters> parameters,
                           std::span<const int64_t> positions, Tensor tokens) {
  Time("sample", [&] { inner_.Sample(logits, vocab, parameters, positions, tokens); });
}

}  // namespace hippodrome
