// Tells how long each operation of another backend takes.
#ifndef HIPPODROME_TOOLS_BENCH_TIMING_BACKEND_H_
#define HIPPODROME_TOOLS_BENCH_TIMING_BACKEND_H_

#include <chrono>
#include <map>
#include <string>

#include "kernels/backend.h"

namespace hippodrome {

// Passes every call on to `inner`, which must outlive it, and adds up the seconds by operation.
class TimingBackend final : public Backend {
 public:
  explicit TimingBackend(Backend& inner) : inner_(inner) {}

  // Seconds by operation since the last Clear(); matrix products by the size of W ("linear
  // 768x3072").
  const std::map<std::string, double>& seconds() const { return seconds_; }
  void Clear() { seconds_.clear(); }

  std::string name() const override { return inner_.name(); }
  PrefillShape prefill_shape() const override { return inner_.prefill_shape(); }
  int64_t StepRows(int64_t rows) const override { return inner_.StepRows(rows); }
  OwnedTensor NewActivations(int64_t rows, int64_t cols, DType weights) override {
    return inner_.NewActivations(rows, cols, weights);
  }
  OwnedTensor NewTensor(int64_t rows, int64_t cols) override {
    return inner_.NewTensor(rows, cols);
  }
  OwnedTensor NewIndices(int64_t rows, int64_t cols) override {
    return inner_.NewIndices(rows, cols);
  }
  void Upload(std::span<const float> values, Tensor dst) override { inner_.Upload(values, dst); }
  void UploadIndices(std::span<const int32_t> values, Tensor dst) override {
    inner_.UploadIndices(values, dst);
  }
  void Download(Tensor src, std::span<float> values) override { inner_.Download(src, values); }
  void DownloadIndices(Tensor src, std::span<int32_t> values) override {
    inner_.DownloadIndices(src, values);
  }
  std::unique_ptr<LinearWeights> PackLinear(std::span<const HostMatrix> parts,
                                            DType dtype) override {
    return inner_.PackLinear(parts, dtype);
  }
  std::unique_ptr<H3Weights> PrepareH3(const H3Parameters& parameters, DType weights) override {
    return inner_.PrepareH3(parameters, weights);
  }
  std::unique_ptr<H3State> NewH3State(const H3Weights& weights, int64_t slots) override {
    return inner_.NewH3State(weights, slots);
  }
  void ResetSlot(H3State& state, int64_t slot) override { inner_.ResetSlot(state, slot); }
  void CopySlot(H3State& state, int64_t from, int64_t to) override {
    inner_.CopySlot(state, from, to);
  }
  H3StateExport ExportSlot(const H3Weights& weights, const H3State& state, int64_t slot,
                           int64_t position) override {
    return inner_.ExportSlot(weights, state, slot, position);
  }
  std::unique_ptr<KeyValuePages> NewKeyValuePages(const AttentionShape& shape, int64_t pages,
                                                  int64_t page_tokens, DType weights) override {
    return inner_.NewKeyValuePages(shape, pages, page_tokens, weights);
  }

  void Embedding(const LinearWeights& table, Tensor position_table, Tensor ids, Tensor positions,
                 Tensor y) override;
  void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) override;
  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override;
  void H3Sequence(const H3Weights& weights, Tensor qkv, H3State& state, Tensor slots, int64_t start,
                  Tensor o) override;
  void H3Step(const H3Weights& weights, Tensor qkv, H3State& state, Tensor slots, Tensor positions,
              Tensor o) override;
  void AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                         KeyValuePages& pages, Tensor page_tables, int64_t start,
                         Tensor o) override;
  void AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, KeyValuePages& pages,
                     Tensor page_tables, Tensor positions, Tensor o) override;
  void Sample(Tensor logits, int64_t vocab, Tensor rows, Tensor tokens) override;

 private:
  template <typename Call>
  void Time(const std::string& operation, const Call& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    seconds_[operation] +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  Backend& inner_;
  std::map<std::string, double> seconds_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_TIMING_BACKEND_H_
