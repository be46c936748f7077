#include "kernels/cuda/h3/h3_convolution.h"

#include <gtest/gtest.h>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::h3_convolution_test {
namespace {

using Values = std::vector<float>;

// A layer with random parameters, and what it makes of random sequences.
struct Layer {
  int64_t d_model = 6;
  int64_t head_dim = 1;
  int64_t d_state = 4;
  int64_t n_ssm = 2;
  H3OutputOrder order = H3OutputOrder::kHeadD2;
  int64_t sequences = 3;
  int64_t tokens = 10;

  int64_t heads() const { return d_model / head_dim; }
  int64_t rows() const { return sequences * tokens; }
};

struct Outcome {
  Values o, dqkv;
  std::vector<double> dtaps, dk;

  bool operator==(const Outcome&) const = default;
};

Outcome RunLayer(const Layer& layer, DType dtype, const Values& qkv) {
  const int64_t modes = layer.d_state / 2;
  const Values shift = RandomValues(layer.d_model * layer.d_state, 1);
  const Values d = RandomValues(layer.d_model, 2);
  const Values log_dt(static_cast<size_t>(layer.heads()), -2);
  const Values a = RandomValues(layer.n_ssm * modes, 3);
  const Values b = RandomValues(layer.n_ssm * modes * 2, 4);
  const Values c = RandomValues(layer.heads() * modes * 2, 5);
  const H3Parameters parameters = {.d_model = layer.d_model,
                                   .head_dim = layer.head_dim,
                                   .d_state = layer.d_state,
                                   .n_ssm = layer.n_ssm,
                                   .output_order = layer.order,
                                   .shift_b = shift,
                                   .shift_c = shift,
                                   .shift_d = d,
                                   .d = std::span(d).first(static_cast<size_t>(layer.heads())),
                                   .log_dt = log_dt,
                                   .inv_a_real = a,
                                   .a_imag = a,
                                   .b = b,
                                   .c = c};
  Device device;
  const H3ConvolutionKernels constants(device, parameters, layer.tokens, dtype);
  H3KernelGradients sums(device, constants);
  const DeviceMatrix in(device, {layer.rows(), 3 * layer.d_model, dtype, 1}, qkv);
  const DeviceMatrix o(device, {layer.rows(), layer.d_model, dtype, 3});
  const DeviceMatrix d_o(device, {layer.rows(), layer.d_model},
                         RandomValues(layer.rows() * layer.d_model, 6));
  const DeviceMatrix dqkv(device, {layer.rows(), 3 * layer.d_model, DType::kF32, 2});
  H3Convolution(device, constants, in.view(), layer.sequences, o.view());
  H3ConvolutionBackward(device, constants, in.view(), layer.sequences, d_o.view(), {dqkv.view()},
                        sums);
  EXPECT_TRUE(o.SurroundingsAreZero() && dqkv.SurroundingsAreZero());
  return {o.values(), dqkv.values(), sums.taps.Take(device), sums.kernels.Take(device)};
}

Values Projections(const Layer& layer) {
  Values qkv = RandomValues(layer.rows() * 3 * layer.d_model, 7);
  for (float& x : qkv) x = Stored(DType::kBF16, x);
  return qkv;
}

const Layer kLayers[] = {
    {}, {.tokens = 300}, {.d_model = 12, .head_dim = 3, .order = H3OutputOrder::kD2Head}};

// Nothing between qkv and o is rounded to bf16.
TEST(H3ConvolutionTest, BF16DiffersInTheRoundingOfTheOutput) {
  for (const Layer& layer : kLayers) {
    const Values qkv = Projections(layer);
    Outcome expected = RunLayer(layer, DType::kF32, qkv);
    for (float& x : expected.o) x = Stored(DType::kBF16, x);
    EXPECT_TRUE(RunLayer(layer, DType::kBF16, qkv) == expected);
  }
}

TEST(H3ConvolutionTest, ThreadsMayRunInAnyOrder) {
  for (const Layer& layer : {kLayers[0], kLayers[2]}) {
    const Values qkv = Projections(layer);
    const Outcome expected = RunLayer(layer, DType::kF32, qkv);
    cuda_on_cpu::InEveryOrder([&] { EXPECT_TRUE(RunLayer(layer, DType::kF32, qkv) == expected); });
  }
}

TEST(H3ConvolutionTest, SequencesDoNotMix) {
  const Layer three;
  Layer one = three;
  one.sequences = 1;
  const Values qkv = Projections(three);
  const Outcome all = RunLayer(three, DType::kF32, qkv);
  const Outcome first = RunLayer(one, DType::kF32, {qkv.begin(), qkv.begin() + one.rows() * 18});
  EXPECT_EQ(Values(all.o.begin(), all.o.begin() + std::ssize(first.o)), first.o);
}

}  // namespace
}  // namespace hippodrome::cuda::h3_convolution_test
