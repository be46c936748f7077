#include "engine/passes/decode_step.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"

namespace hippodrome::decode_step_test {
namespace {

std::vector<float> Values(Backend& backend, Tensor logits) {
  std::vector<float> values(logits.rows * logits.cols);
  backend.Download(logits, values);
  return values;
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
