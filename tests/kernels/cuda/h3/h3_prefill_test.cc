// The contract of Backend::H3Sequence, whatever computes it.
#include "kernels/cuda/h3/h3_prefill.h"

#include <cuda_runtime.h>

#include <numeric>

#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_prefill_test {
namespace {

constexpr DType kTypes[] = {DType::kBF16, DType::kF32};

// Constants of the error bounds in roundings of float, of the least exact method for the type.
double OutputConstant(DType dtype) { return dtype == DType::kBF16 ? 80 : 2; }
double StateConstant(DType dtype) { return dtype == DType::kBF16 ? 450 : 1.5; }

// The whole, and the same in two parts.
void ExpectSequence(const H3Shape& shape, int64_t tokens) {
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(testing::Message()
                 << "T " << tokens << " d " << shape.d_model << " head " << shape.head_dim << " N "
                 << shape.d_state << " " << Name(dtype));
    H3Layer layer(shape, dtype);
    const Values qkv = layer.RandomTokens(tokens, 3);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    const Values o = layer.Sequence(H3Sequence, qkv, {1});
    layer.ExpectOutput(expected, 0, tokens, o, OutputConstant(dtype));
    layer.ExpectState(expected, 1, StateConstant(dtype));

    const int64_t cut = tokens / 3;
    if (cut == 0) continue;
    layer.Sequence(H3Sequence, RowsOf(qkv, 3 * layer.d(), 0, cut), {0});
    const Values rest = layer.Sequence(H3Sequence, RowsOf(qkv, 3 * layer.d(), cut, tokens), {0});
    layer.ExpectOutput(expected, cut, tokens, rest, OutputConstant(dtype));
    layer.ExpectState(expected, 0, StateConstant(dtype));
  }
}

TEST(H3SequenceTest, EveryLength) {
  for (const int64_t tokens : {1, 2, 16, 63, 65, 300, 600}) ExpectSequence({.d_model = 4}, tokens);
}

TEST(H3SequenceTest, EveryShape) {
  for (const int64_t d_state : {2, 6, 128}) ExpectSequence({.d_model = 3, .d_state = d_state}, 80);
  for (const H3OutputOrder order : {H3OutputOrder::kHeadD2, H3OutputOrder::kD2Head}) {
    for (auto [d, head_dim] : {std::pair{4, 2}, {16, 8}}) {
      ExpectSequence({.d_model = d, .head_dim = head_dim, .d_state = 8, .output_order = order}, 50);
    }
  }
}

// Parts of different starts and lengths, which inert ones are among: in one call, and each alone.
void ExpectRaggedParts(const H3Shape& shape, int64_t slots) {
  const Indices prompts = {0, 100, 37, 0, 5, 64};
  const Indices order = {4, 0, -1, 2, 3, 1, 5};
  const Indices tokens = {70, 600, 9, 1, 20, 33, 530};
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(testing::Message() << "d " << shape.d_model << " head " << shape.head_dim << " N "
                                    << shape.d_state << " " << Name(dtype) << " slots " << slots);
    H3Layer together(shape, dtype, slots);
    H3Layer alone(shape, dtype, slots);
    const int64_t d = shape.d_model;
    for (int32_t slot = 0; slot < 6; ++slot) {
      const int64_t prompt = prompts[static_cast<size_t>(slot)];
      if (prompt == 0) continue;
      const Values qkv = alone.RandomTokens(prompt, static_cast<uint32_t>(slot));
      together.Sequence(H3Sequence, qkv, {slot});
      alone.Sequence(H3Sequence, qkv, {slot});
    }
    const Values qkv =
        alone.RandomTokens(std::accumulate(tokens.begin(), tokens.end(), int64_t{0}), 9);
    const Values o = together.Parts(H3Sequence, qkv, order, tokens);
    int64_t row = 0;
    for (size_t i = 0; i < order.size(); row += tokens[i++]) {
      if (order[i] < 0) continue;
      const int64_t end = row + tokens[i];
      EXPECT_EQ(alone.Sequence(H3Sequence, RowsOf(qkv, 3 * d, row, end), {order[i]}),
                RowsOf(o, d, row, end))
          << "part " << i;
      EXPECT_EQ(together.Exchanged(order[i]), alone.Exchanged(order[i])) << "part " << i;
    }
  }
}

TEST(H3SequenceTest, RaggedPartsEqualEachAlone) {
  for (const int64_t slots : {int64_t{6}, kLookaheadSlots}) {
    ExpectRaggedParts({.d_model = 4}, slots);
    ExpectRaggedParts({.d_model = 4, .head_dim = 2, .d_state = 8}, slots);
  }
}

TEST(H3SequenceTest, PartsOfOneMethodAreOneLaunch) {
  for (const DType dtype : kTypes) {
    H3Layer layer({.d_model = 16}, dtype, 5);
    for (int32_t slot = 0; slot < 4; ++slot) layer.set_position(slot, 10 + 3 * slot);
    cuda_on_cpu::ResetLaunchCounts();
    layer.Parts(H3Sequence, layer.RandomTokens(35, 3), {0, 1, 2, 3}, {1, 20, 5, 9});
    EXPECT_EQ(cuda_on_cpu::LaunchCount("h3_scan"), 1);
    EXPECT_EQ(cuda_on_cpu::LaunchCount(), 1);
  }
}

// Captured states are those of a prefill that ends there, and what goes on is not disturbed.
void ExpectCaptures(const H3Shape& shape, int64_t slots) {
  constexpr int32_t kPrompt = 40;
  const Indices tokens = {300, 50, 128};
  // Of the second part none; of the third one in the middle, and at its end two.
  const std::vector<StateCapture> captures = {{.part = 0, .tokens = 264, .to = 3},
                                              {.part = 0, .tokens = 296, .to = 4},
                                              {.part = 2, .tokens = 8, .to = 5},
                                              {.part = 2, .tokens = 128, .to = 6},
                                              {.part = 2, .tokens = 128, .to = 7}};
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(testing::Message()
                 << "head " << shape.head_dim << " " << Name(dtype) << " slots " << slots);
    H3Layer layer(shape, dtype, slots);
    const int64_t row = 3 * layer.d();
    const Values prompt = layer.RandomTokens(kPrompt, 1);
    layer.Sequence(H3Sequence, prompt, {2});
    const Values qkv = layer.RandomTokens(300 + 50 + 128, 3);
    const Values o = layer.Parts(H3Sequence, qkv, {0, 1, 2}, tokens, captures);

    int64_t first = 0;
    for (int32_t part = 0; part < 3; ++part) {
      SCOPED_TRACE(testing::Message() << "part " << part);
      const int64_t count = tokens[static_cast<size_t>(part)];
      Values whole = part == 2 ? prompt : Values();
      const int64_t before = static_cast<int64_t>(whole.size()) / row;
      const Values mine = RowsOf(qkv, row, first, first + count);
      whole.insert(whole.end(), mine.begin(), mine.end());
      const H3Expectation expected = ExpectedH3(layer.parameters(), whole);
      layer.ExpectOutput(expected, before, before + count,
                         RowsOf(o, layer.d(), first, first + count), OutputConstant(dtype));
      layer.ExpectState(expected, part, StateConstant(dtype));
      for (const StateCapture& capture : captures) {
        if (capture.part != part) continue;
        SCOPED_TRACE(testing::Message() << "capture to " << capture.to);
        const int64_t end = before + capture.tokens;
        EXPECT_EQ(layer.position(capture.to), end);
        layer.ExpectState(ExpectedH3(layer.parameters(), RowsOf(whole, row, 0, end)), capture.to,
                          StateConstant(dtype));
        if (end == before + count) continue;
        // The slot goes on by a step.
        layer.ExpectOutput(expected, end, before + count,
                           layer.Step(H3Step, RowsOf(whole, row, end, end + 1), {capture.to}),
                           OutputConstant(dtype));
      }
      first += count;
    }
  }
}

TEST(H3SequenceTest, CapturesStatesOnTheWay) {
  for (const int64_t slots : {int64_t{8}, kLookaheadSlots}) {
    ExpectCaptures({.d_model = 3}, slots);
    ExpectCaptures({.d_model = 4, .head_dim = 2, .d_state = 8}, slots);
  }
}

// Which method computes a call, in one launch once it has made its tables.
std::string MethodOf(const H3Shape& shape, DType dtype, int64_t start) {
  H3Layer layer(shape, dtype);
  const Values qkv = layer.RandomTokens(100, 3);
  for (int i = 0; i < 2; ++i) {
    layer.set_position(1, start);
    cuda_on_cpu::ResetLaunchCounts();
    layer.Sequence(H3Sequence, qkv, {1});
  }
  EXPECT_EQ(cuda_on_cpu::LaunchCount(), 1);
  for (const char* method : {"h3_scan", "h3_fft", "h3_recurrence"}) {
    if (cuda_on_cpu::LaunchCount(method) == 1) return method;
  }
  return "";
}

TEST(H3SequenceTest, ChoosesTheFastestMethod) {
  EXPECT_EQ(MethodOf({.d_model = 16}, DType::kBF16, 0), "h3_scan");
  EXPECT_EQ(MethodOf({.d_model = 16}, DType::kBF16, 100), "h3_scan");
  EXPECT_EQ(MethodOf({.d_model = 16}, DType::kF32, 0), "h3_fft");
  EXPECT_EQ(MethodOf({.d_model = 16}, DType::kF32, 100), "h3_scan");
  EXPECT_EQ(MethodOf({.d_model = 16, .d_state = 128}, DType::kBF16, 100), "h3_recurrence");
  EXPECT_EQ(MethodOf({.d_model = 16, .head_dim = 2}, DType::kBF16, 100), "h3_recurrence");
}

}  // namespace
}  // namespace hippodrome::cuda::h3_prefill_test
