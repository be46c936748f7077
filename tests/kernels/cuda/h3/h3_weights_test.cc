#include "kernels/cuda/h3/h3_weights.h"

#include "kernels/ssm/h3_ssm.h"
#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_weights_test {
namespace {

Values Fetch(Device& device, const void* from, int64_t count) {
  Values values(static_cast<size_t>(count));
  const Tensor view = {const_cast<void*>(from), DType::kF32, 1, count, count};
  CopyOut(device, view, std::span<float>(values));
  return values;
}

void ExpectFloats(const Values& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(expected[i])) << i;
  }
}

std::vector<double> Flatten(const std::vector<std::complex<double>>& values) {
  std::vector<double> out;
  for (const std::complex<double>& value : values) {
    out.push_back(value.real());
    out.push_back(value.imag());
  }
  return out;
}

void ExpectConstants(const H3Shape& shape) {
  H3Layer layer(shape);
  Device& device = layer.device();
  const H3Parameters& p = layer.parameters();
  const H3View& view = layer.constants().view();
  const int64_t heads = shape.d_model / shape.head_dim;
  EXPECT_EQ(view.d_model, shape.d_model);
  EXPECT_EQ(view.head_dim, shape.head_dim);
  EXPECT_EQ(view.heads, heads);
  EXPECT_EQ(view.taps, shape.d_state);
  EXPECT_EQ(view.modes, shape.d_state / 2);
  EXPECT_EQ(view.head_major, shape.output_order == H3OutputOrder::kHeadD2 ? 1 : 0);

  EXPECT_EQ(Fetch(device, view.fir, shape.d_model * shape.d_state), H3TapsWithSkips(p));
  const H3Modes modes = DiscretizeH3(p);
  ExpectFloats(Fetch(device, view.a, heads * shape.d_state), Flatten(modes.da));
  ExpectFloats(Fetch(device, view.w, heads * shape.d_state), Flatten(modes.weights));
  ExpectFloats(Fetch(device, view.skip, heads), {p.d.begin(), p.d.end()});
  EXPECT_EQ(Fetch(device, view.kernel, heads * kScanSteps), H3KernelsWithSkips(p, kScanSteps));
}

TEST(H3WeightsTest, AreThoseOfTheKernelInDouble) {
  ExpectConstants({.d_model = 16});
  ExpectConstants({.d_model = 5, .d_state = 6, .discretization = Discretization::kZoh});
  ExpectConstants({.d_model = 12,
                   .head_dim = 3,
                   .d_state = 2,
                   .n_ssm = 2,
                   .output_order = H3OutputOrder::kD2Head});
}

TEST(H3WeightsTest, ArraysStartAtVectors) {
  H3Layer layer({.d_model = 7, .d_state = 6});
  const H3View& view = layer.constants().view();
  for (const void* array : {static_cast<const void*>(view.fir), static_cast<const void*>(view.a),
                            static_cast<const void*>(view.w), static_cast<const void*>(view.skip),
                            static_cast<const void*>(view.kernel)}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array) % 256, 0u);
  }
  EXPECT_GE(layer.constants().bytes(), 7 * (6 + 6 + 6 + 1 + 16) * 4);
}

TEST(H3WeightsTest, SpectraAreMadeOnce) {
  H3Layer layer({.d_model = 2});
  int made = 0;
  const auto make = [&] {
    ++made;
    return AllocateZeroed(layer.device(), 64);
  };
  const float2* spectra = layer.constants().Spectra(32, make);
  EXPECT_EQ(layer.constants().Spectra(32, make), spectra);
  EXPECT_NE(layer.constants().Spectra(64, make), spectra);
  EXPECT_EQ(made, 2);
}

}  // namespace
}  // namespace hippodrome::cuda::h3_weights_test
