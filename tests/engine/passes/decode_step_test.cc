#include "engine/passes/decode_step.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tools/compare/forwarding_backend.h"

namespace hippodrome::decode_step_test {
namespace {

std::vector<float> Values(Backend& backend, Tensor logits) {
  std::vector<float> values(logits.rows * logits.cols);
  backend.Download(logits, values);
  return values;
}

// Counts the products that were said to come, and did behind one operation.
class ExpectationBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  int64_t kept() const { return kept_; }
  int64_t products() const { return products_; }

  void ExpectLinear(const LinearWeights& w) override {
    EXPECT_EQ(expected_, nullptr);
    expected_ = &w;
    operations_ = 0;
  }
  void LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) override {
    ++operations_;
    ForwardingBackend::LayerNorm(x, gamma, beta, epsilon, y);
  }
  void H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state, Tensor slots,
              Tensor positions, Tensor o) override {
    ++operations_;
    ForwardingBackend::H3Step(weights, qkv, state, slots, positions, o);
  }
  void AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, KeyValuePages& pages,
                     Tensor page_tables, Tensor positions, Tensor o) override {
    ++operations_;
    ForwardingBackend::AttentionStep(shape, qkv, inv_freq, pages, page_tables, positions, o);
  }
  void Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) override {
    ++products_;
    if (const LinearWeights* const expected = std::exchange(expected_, nullptr)) {
      EXPECT_EQ(expected, &w);
      EXPECT_EQ(operations_, 1);
      ++kept_;
    }
    ForwardingBackend::Linear(x, w, epilogue, y);
  }

 private:
  const LinearWeights* expected_ = nullptr;
  int64_t operations_ = 0;
  int64_t kept_ = 0;
  int64_t products_ = 0;
};

TEST(DecodeStepTest, SaysWhichProductsCome) {
  const auto cpu = MakeCpuBackend({.threads = 1});
  ExpectationBackend backend(*cpu);
  const auto model = MakeTestModel(backend, TinyConfig());
  const auto state = model->NewState(backend, 1, 1, 64);
  DecodeStep step(backend, *model, *state, 1);
  SequenceState sequence = *state->Reserve(1);
  const StepToken token{1, 0, &sequence};
  step.Logits({&token, 1});
  // All of three layers and the head, but for the second of every MLP, which is behind the first.
  EXPECT_EQ(backend.products(), 3 * 4 + 1);
  EXPECT_EQ(backend.kept(), 3 * 3 + 1);
}

// Feeds `steps` tokens to each of three sequences with tables of different width: together, and one
// sequence after the other.
TEST(DecodeStepTest, ARowInABatchIsTheRowAlone) {
  constexpr int64_t kSteps = 70;  // more than a page
  const auto backend = MakeCpuBackend({.threads = 2});
  const auto model = MakeTestModel(*backend, TinyConfig());
  const auto ids = RandomIds(3 * kSteps, 40, 8);
  const auto together = model->NewState(*backend, 3, 12, 64);
  const auto apart = model->NewState(*backend, 3, 12, 64);
  DecodeStep batch(*backend, *model, *together, 3);
  DecodeStep single(*backend, *model, *apart, 1);
  std::vector<SequenceState> batched, alone;
  for (const int64_t pages : {2, 5, 3}) {
    batched.push_back(*together->Reserve(pages));
    alone.push_back(*apart->Reserve(pages));
  }
  const int64_t columns = model->config().padded_vocab_size;
  for (int64_t t = 0; t < kSteps; ++t) {
    std::vector<StepToken> tokens;
    for (int64_t i = 0; i < 3; ++i) tokens.push_back({ids[i * kSteps + t], t, &batched[i]});
    const auto all = Values(*backend, batch.Logits(tokens));
    for (int64_t i = 0; i < 3; ++i) {
      const StepToken token{ids[i * kSteps + t], t, &alone[i]};
      const auto one = Values(*backend, single.Logits({&token, 1}));
      const std::vector<float> row(all.begin() + i * columns, all.begin() + (i + 1) * columns);
      ASSERT_EQ(row, one) << "sequence " << i << ", step " << t;
    }
  }
}

}  // namespace
}  // namespace hippodrome::decode_step_test
