// Tells how long each operation of another backend takes.
#ifndef HIPPODROME_TOOLS_BENCH_TIMING_BACKEND_H_
#define HIPPODROME_TOOLS_BENCH_TIMING_BACKEND_H_

#include <map>
#include <string>
#include <utility>

#include "tools/compare/forwarding_backend.h"
#include "tools/limits/clock.h"

namespace hippodrome {

// Passes every call on to `inner`, which must outlive it, and adds up the seconds by operation.
class TimingBackend final : public ForwardingBackend {
 public:
  explicit TimingBackend(Backend& inner, Clock clock = SteadySeconds)
      : ForwardingBackend(inner), clock_(std::move(clock)) {}

  // Seconds by operation since the last Clear(); matrix products by the size of W ("linear
  // 768x3072").
  const std::map<std::string, double>& seconds() const { return seconds_; }
  void Clear() { seconds_.clear(); }

  void Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                 const AddedRows& positions, Tensor y) override;
  void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) override;
  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override;
  void Activate(Tensor x, const Epilogue& epilogue, Tensor y) override;
  void H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                  const SequenceParts& parts, Tensor o) override;
  void H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor slots,
              Tensor positions, Tensor o) override;
  void SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                   const SequenceParts& parts, Tensor y) override;
  void SsmStep(const SsmWeights& weights, Tensor u, RecurrentState& state, Tensor slots,
               Tensor y) override;
  void LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv, RecurrentState& state,
                               const SequenceParts& parts, Tensor o) override;
  void LinearAttentionStep(const LinearAttentionShape& shape, Tensor qkv, RecurrentState& state,
                           Tensor slots, Tensor o) override;
  void AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                         KeyValuePages& pages, Tensor page_tables, const SequenceParts& parts,
                         Tensor o) override;
  void AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, KeyValuePages& pages,
                     Tensor page_tables, Tensor positions, Tensor o) override;
  void LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences, Direction direction,
                Tensor y) override;
  void BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                              Tensor o) override;
  void MeanPool(Tensor x, Tensor mask, Tensor y) override;
  void GatherRows(Tensor x, Tensor rows, Tensor y) override;
  void Sample(Tensor logits, int64_t vocab, Tensor rows, const LogitAdjustments& adjustments,
              Tensor tokens) override;

 private:
  template <typename Call>
  void Time(const std::string& operation, const Call& call) {
    const double begin = clock_();
    call();
    Wait();
    seconds_[operation] += clock_() - begin;
  }

  const Clock clock_;
  std::map<std::string, double> seconds_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_TIMING_BACKEND_H_
