// The handles that a tape gives to models.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/tape/handles.h"
#include "kernels/tape/tape.h"

namespace hippodrome {
namespace {

// Whole sequences leave no state behind.
class NoState final : public H3State {
 public:
  explicit NoState(int64_t slots) : slots_(slots) {}
  int64_t slots() const override { return slots_; }
  int64_t bytes_per_slot() const override { return 0; }

 private:
  int64_t slots_;
};

class NoPages final : public KeyValuePages {
 public:
  NoPages(int64_t pages, int64_t page_tokens) : pages_(pages), page_tokens_(page_tokens) {}
  int64_t pages() const override { return pages_; }
  int64_t page_tokens() const override { return page_tokens_; }
  int64_t bytes_per_page() const override { return 0; }

 private:
  int64_t pages_;
  int64_t page_tokens_;
};

[[noreturn]] void Refuse() { throw std::logic_error("tape: states are not recorded"); }

}  // namespace

std::unique_ptr<LinearWeights> Tape::PackLinear(std::span<const HostMatrix> parts, DType dtype) {
  auto trained = std::make_shared<TrainedLinear>(backend_, parameters_, parts, dtype);
  trained_.push_back(trained);
  return std::make_unique<TapedLinear>(std::move(trained));
}

std::unique_ptr<H3Weights> Tape::PrepareH3(const H3Parameters& parameters, DType weights) {
  auto trained =
      std::make_shared<TrainedH3>(backend_, parameters_, parameters, options_.longest, weights);
  trained_.push_back(trained);
  return std::make_unique<TapedH3>(std::move(trained));
}

std::unique_ptr<LongConvWeights> Tape::PrepareLongConv(const LongConvParameters& parameters,
                                                       int64_t longest, DType weights) {
  auto trained = std::make_shared<TrainedLongConv>(backend_, parameters_, parameters,
                                                   std::min(longest, options_.longest), weights);
  trained_.push_back(trained);
  return std::make_unique<TapedLongConv>(std::move(trained));
}

std::unique_ptr<H3State> Tape::NewH3State(const H3Weights& /*weights*/, int64_t slots) {
  return std::make_unique<NoState>(slots);
}

void Tape::ResetSlot(H3State& /*state*/, int64_t /*slot*/) {}

void Tape::CopySlot(H3State& /*state*/, int64_t /*from*/, int64_t /*to*/) { Refuse(); }

H3StateExport Tape::ExportSlot(const H3Weights& /*weights*/, const H3State& /*state*/,
                               int64_t /*slot*/, int64_t /*position*/) {
  Refuse();
}

std::unique_ptr<KeyValuePages> Tape::NewKeyValuePages(const AttentionShape& /*shape*/,
                                                      int64_t pages, int64_t page_tokens,
                                                      DType /*weights*/) {
  return std::make_unique<NoPages>(pages, page_tokens);
}

void Tape::H3Step(const H3Weights& /*weights*/, Tensor /*qkv*/, H3State& /*state*/,
                  Tensor /*slots*/, Tensor /*positions*/, Tensor /*o*/) {
  Refuse();
}

void Tape::AttentionStep(const AttentionShape& /*shape*/, Tensor /*qkv*/, Tensor /*inv_freq*/,
                         KeyValuePages& /*pages*/, Tensor /*page_tables*/, Tensor /*positions*/,
                         Tensor /*o*/) {
  Refuse();
}

void Tape::Sample(Tensor logits, int64_t vocab, Tensor rows, Tensor tokens) {
  backend_.Sample(logits, vocab, rows, tokens);
}

}  // namespace hippodrome
