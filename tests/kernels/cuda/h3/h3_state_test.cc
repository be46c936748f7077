#include "kernels/cuda/h3/h3_state.h"

#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_state_test {
namespace {

TEST(H3StateTest, CountsItsBytes) {
  const H3Shape shape = {.d_model = 32, .head_dim = 2, .d_state = 8};
  H3Layer f32(shape, DType::kF32, 5);
  H3Layer bf16(shape, DType::kBF16, 5);
  // 32 channels of 8 inputs, and 64 rows of 4 complex modes.
  EXPECT_EQ(f32.state().bytes_per_slot(), 32 * 8 * 4 + 64 * 4 * 8);
  EXPECT_EQ(bf16.state().bytes_per_slot(), 32 * 8 * 2 + 64 * 4 * 8);
  EXPECT_EQ(f32.state().slots(), 5);
}

TEST(H3StateTest, StartsEmpty) {
  H3Layer layer({.d_model = 4, .head_dim = 2, .d_state = 6});
  const PublishedState state = layer.Export(1);
  EXPECT_EQ(state.shift, Values(4 * 6));
  EXPECT_EQ(state.diagonal, Values(2 * 2 * 2 * 3 * 2));
}

TEST(H3StateTest, ExportsThePublishedDefinition) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t head_dim : {1, 3}) {
      for (const int64_t tokens : {1, 9, 10, 23}) {
        H3Layer layer({.d_model = 9, .head_dim = head_dim, .d_state = 10}, dtype);
        const Values qkv = layer.RandomTokens(tokens, 4);
        layer.Sequence(H3Recurrence, qkv, {1});
        layer.ExpectState(ExpectedH3(layer.parameters(), qkv), 1);
      }
    }
  }
}

TEST(H3StateTest, CopiesAndResetsSlots) {
  H3Layer layer({.d_model = 5, .d_state = 6}, DType::kBF16, 3);
  const Values qkv = layer.RandomTokens(11, 4);
  const Values first = layer.Sequence(H3Recurrence, qkv, {1});
  const PublishedState one = layer.Export(1);
  layer.state().Copy(layer.device(), 1, 2);
  layer.set_position(2, 11);
  EXPECT_EQ(layer.Export(2).diagonal, one.diagonal);
  EXPECT_EQ(layer.Export(2).shift, one.shift);
  EXPECT_EQ(layer.Export(0).diagonal, Values(one.diagonal.size()));
  EXPECT_EQ(layer.Sequence(H3Recurrence, qkv, {1}), layer.Sequence(H3Recurrence, qkv, {2}));

  layer.state().Reset(layer.device(), 2);
  layer.set_position(2, 0);
  EXPECT_EQ(layer.Export(2).diagonal, Values(one.diagonal.size()));
  EXPECT_EQ(layer.Export(2).shift, Values(one.shift.size()));
  EXPECT_EQ(layer.Sequence(H3Recurrence, qkv, {2}), first);
}

TEST(H3StateTest, CopyOntoItselfChangesNothing) {
  H3Layer layer({.d_model = 5, .d_state = 6});
  layer.Sequence(H3Recurrence, layer.RandomTokens(3, 4), {1});
  const PublishedState before = layer.Export(1);
  layer.state().Copy(layer.device(), 1, 1);
  EXPECT_EQ(layer.Export(1).diagonal, before.diagonal);
}

}  // namespace
}  // namespace hippodrome::cuda::h3_state_test
